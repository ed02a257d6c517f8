import type { Query } from '../ast.ts';
import { printQuery } from '../print/print.ts';
import type { Scope } from '../resolve/scope.ts';
import type { Sql } from '../sql.ts';
import type { CompiledQuery, Compiler } from './compiler.ts';

/** A subquery of an expression, with the alias of its rows. */
export interface Subquery extends CompiledQuery {
  readonly alias: Sql;
}

/**
 * Compiles a subquery of an expression. It cannot see the outer rows, so subqueries with equal text share one
 * fragment and match GROUP BY keys.
 */
export function subqueryOf(compiler: Compiler, query: Query, scope: Scope): Subquery {
  const make = (): Subquery => ({
    ...compiler.query(query, scope),
    alias: scope.statement.uniqueName('subquery'),
  });
  if (scope.lambdaParameters.size > 0) return make();
  const { subqueries } = scope.statement;
  const known = subqueries.get(scope.ctes) ?? new Map<string, Subquery>();
  subqueries.set(scope.ctes, known);
  const text = printQuery(query);
  const found = known.get(text) ?? make();
  known.set(text, found);
  return found;
}
