import type { Expression } from '../../../dialect/ast.ts';
import { combineConditions } from '../../../dialect/ast_builders.ts';

/** Joins conditions with AND and flattens nested ANDs; nulls are skipped. */
export const conjunction = (conditions: readonly (Expression | null)[]): Expression | null =>
  combineConditions(
    'and',
    conditions.flatMap((condition): readonly (Expression | null)[] =>
      condition?.kind === 'logical' && condition.operator === 'and' ? condition.operands : [condition],
    ),
  );
