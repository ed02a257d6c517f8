import type { Query } from '../ast.ts';
import { syntaxIdentity } from '../resolve/syntax_identity.ts';
import type { Scope } from '../resolve/scope.ts';
import { derive, identityOf, type Value } from '../resolve/value.ts';
import { sql, type Sql } from '../sql.ts';
import type { Type } from '../types.ts';
import { columnAlias, type CompiledQuery, type Compiler } from './compiler.ts';

/** A subquery of an expression, with the alias of its rows. */
export interface Subquery extends CompiledQuery {
  readonly alias: Sql;
  /** Unique in the statement. */
  readonly number: number;
}

/**
 * Compiles a subquery of an expression. It cannot see the outer rows, so equal subqueries share one, and match GROUP BY
 * keys. In a lambda they must also read the same parameters. Without that, a subquery would be compiled once for each time
 * its SELECT is, and nested ones exponentially often.
 */
export function subqueryOf(compiler: Compiler, query: Query, scope: Scope): Subquery {
  const { statement } = scope;
  const known = statement.subqueries.get(scope.ctes) ?? new Map<string, Subquery>();
  statement.subqueries.set(scope.ctes, known);
  const key = `${parametersKey(scope)}${syntaxIdentity(query)}`;
  const found = known.get(key);
  if (found !== undefined) return found;
  const number = statement.nextNumber();
  const made = { ...compiler.query(query, scope), alias: statement.uniqueName('subquery'), number };
  known.set(key, made);
  return made;
}

/** What a value computed from a subquery calls it. */
export const operationOf = ({ number }: Subquery): string => `subquery ${number}`;

/** A column of a subquery's rows. */
export const subqueryColumn = (query: Subquery, index: number, type: Type): Value =>
  derive(
    `${operationOf(query)} column ${index + 1}`,
    [],
    type,
    sql`${query.alias}.${columnAlias(index + 1)}`,
  );

/** Equal for scopes whose lambda parameters mean the same; empty outside of lambdas. */
function parametersKey({ lambdaParameters, lambdaDepth }: Scope): string {
  if (lambdaParameters.size === 0) return '';
  const parameters = [...lambdaParameters].map(([name, value]) => [name, identityOf(value), value.type]);
  return `${JSON.stringify([lambdaDepth, parameters])}\n`;
}
