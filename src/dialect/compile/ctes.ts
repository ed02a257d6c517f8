import type { Cte, Expression, Query } from '../ast.ts';
import type { CteScope, NamedQuery } from '../resolve/scope.ts';

/** The scope of a WITH clause. Each CTE sees the ones before it and those of outer queries. */
export function cteScope(ctes: readonly Cte[], outer: CteScope | null): CteScope | null {
  let scope = outer;
  for (const cte of ctes) {
    const queries = new Map<string, NamedQuery>();
    const expressions = new Map<string, Expression>();
    if (cte.kind === 'query_cte') queries.set(cte.name.text, { query: cte.query, scope });
    else expressions.set(cte.name.text, cte.expression);
    scope = { queries, expressions, outer: scope };
  }
  return scope;
}

/** The WITH clause of the first operand, which applies to all operands of a set operation. */
export function leadingCtes(query: Query): readonly Cte[] {
  if (query.kind === 'select') return query.ctes;
  const [first] = query.operands;
  return first === undefined ? [] : leadingCtes(first);
}
