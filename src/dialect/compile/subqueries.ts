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
 * fragment and match GROUP BY keys. In a lambda they must also read the same parameters. Without that, a subquery would be
 * compiled once for each time its SELECT is, and nested ones exponentially often.
 */
export function subqueryOf(compiler: Compiler, query: Query, scope: Scope): Subquery {
  const { subqueries } = scope.statement;
  const known = subqueries.get(scope.ctes) ?? new Map<string, Subquery>();
  subqueries.set(scope.ctes, known);
  const key = `${parametersKey(scope)}${printQuery(query)}`;
  const found = known.get(key);
  if (found !== undefined) return found;
  const made = { ...compiler.query(query, scope), alias: scope.statement.uniqueName('subquery') };
  known.set(key, made);
  return made;
}

/** Equal for scopes whose lambda parameters mean the same; empty outside of lambdas. */
function parametersKey({ lambdaParameters, lambdaDepth }: Scope): string {
  if (lambdaParameters.size === 0) return '';
  const parameters = [...lambdaParameters].map(([name, { sql, type }]) => [name, sql.key, type]);
  return `${JSON.stringify([lambdaDepth, parameters])}\n`;
}
