import type { Expression, Limit } from '../ast.ts';
import type { Scope } from '../resolve/scope.ts';
import { bind, sql, type Sql } from '../sql.ts';
import type { Compiler } from './compiler.ts';

/** A number of rows. @throws DialectError for what is no constant whole number. */
export function wholeNumber(compiler: Compiler, node: Expression, scope: Scope, word: string): bigint {
  const value = compiler.value(node, {
    ...scope,
    relations: [],
    aliases: new Map(),
    grouping: null,
    phase: 'LIMIT',
  });
  if (typeof value.constant !== 'bigint' || value.constant < 0n)
    throw scope.statement.error(`${word} takes a whole number.`, node);
  return value.constant;
}

/** LIMIT and OFFSET with the blank before them. */
export function limitSql(compiler: Compiler, limit: Limit | null, isOrdered: boolean, scope: Scope): Sql {
  if (limit === null) return sql``;
  const { count, offset, withTies } = limit;
  const rows = (node: Expression | null, word: string): Sql | null =>
    node === null ? null : bind(String(wholeNumber(compiler, node, scope, word)), 'int8');
  const [first, skipped] = [rows(count, 'LIMIT'), rows(offset, 'OFFSET')];
  const skip = skipped === null ? sql`` : sql` offset ${skipped}`;
  if (first === null) return skip;
  if (!withTies) return sql` limit ${first}${skip}`;
  if (!isOrdered) throw scope.statement.error('WITH TIES needs ORDER BY.', limit);
  return sql`${skip} fetch first (${first}) rows with ties`;
}
