import type { Query } from '../ast.ts';
import { printQuery } from '../print/print.ts';
import type { Scope } from '../resolve/scope.ts';
import type { Sql } from '../sql.ts';
import type { CompiledQuery, Compiler } from './compiler.ts';

/** A query that stands in an expression, and the name under which its rows are read. */
export interface Subquery extends CompiledQuery {
  readonly alias: Sql;
}

/**
 * A query in an expression. It sees nothing of the rows around it, so one that is written alike is the same piece of
 * SQL: an expression with it is found again among the keys of GROUP BY.
 */
export function subqueryOf(compiler: Compiler, query: Query, scope: Scope): Subquery {
  const make = (): Subquery => ({
    ...compiler.query(query, scope),
    alias: scope.statement.uniqueName('answer'),
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
