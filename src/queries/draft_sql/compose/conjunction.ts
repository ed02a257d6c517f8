import type { Expression } from '../../../dialect/ast.ts';
import { joined } from '../../../dialect/build.ts';

/** All of several conditions side by side; those that are null are left out. */
export const conjunction = (conditions: readonly (Expression | null)[]): Expression | null =>
  joined(
    'and',
    conditions.flatMap((condition): readonly (Expression | null)[] =>
      condition?.kind === 'logical' && condition.operator === 'and' ? condition.operands : [condition],
    ),
  );
