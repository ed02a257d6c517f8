import type { Expression } from '../../../dialect/ast.ts';
import { combineConditions } from '../../../dialect/ast_builders.ts';

/** All of several conditions side by side; those that are null are left out. */
export const conjunction = (conditions: readonly (Expression | null)[]): Expression | null =>
  combineConditions(
    'and',
    conditions.flatMap((condition): readonly (Expression | null)[] =>
      condition?.kind === 'logical' && condition.operator === 'and' ? condition.operands : [condition],
    ),
  );
