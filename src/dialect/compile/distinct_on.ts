import type { Projection } from '../resolve/projection.ts';
import type { Value } from '../resolve/value.ts';
import { commaList, joinSql, sql, type Sql } from '../sql.ts';
import type { CompiledFrom } from './compiled_from.ts';
import { sortKey } from './order_items.ts';
import { asColumn } from './using_columns.ts';

/**
 * The first row per combination of keys, by DISTINCT ON. Rows are ordered by the query's ORDER BY, then by the
 * values of the columns read, so that results do not depend on the plan.
 */
export function distinctOnRows(
  rows: Projection,
  from: CompiledFrom,
  keys: readonly Value[],
  conditions: readonly Sql[],
): Sql {
  const order = orderOf(rows, from, keys);
  const source = sourceOf(from, conditions);
  if (order.length === 0) return sql`select distinct ${rows.selected}${source}`;
  const by = keys.map(({ sql: fragment, type }) => sortKey(fragment, type));
  return sql`select distinct on (${commaList(by)}) ${rows.selected}${source} order by ${commaList([...by, ...order])}`;
}

/** The first row in the same order that satisfies the conditions, for a lateral join. */
export function lateralFirstRow(rows: Projection, from: CompiledFrom, conditions: readonly Sql[]): Sql {
  const order = orderOf(rows, from, []);
  const sorted = order.length === 0 ? sql`` : sql` order by ${commaList(order)}`;
  return sql`select ${rows.selected}${sourceOf(from, conditions)}${sorted} limit 1`;
}

function orderOf(rows: Projection, { relations }: CompiledFrom, keys: readonly Value[]): readonly Sql[] {
  const known = new Set(keys.map((key) => asColumn(key).identity));
  const others = rows.columns.filter(({ identity }) => !known.has(identity));
  if (others.length === 0) return [];
  const ordinals = relations.flatMap((relation) => relation.ordinal?.() ?? []);
  return [...ordinals, ...others.map(({ sql: fragment, type }) => sortKey(fragment, type))];
}

function sourceOf(from: CompiledFrom, conditions: readonly Sql[]): Sql {
  const where = conditions.length === 0 ? sql`` : sql` where ${joinSql(conditions, ' and ')}`;
  return sql` from ${from.sql()}${where}`;
}
