import type { OrderItem } from '../ast.ts';
import type { Scope } from '../resolve/scope.ts';
import { isSame, type Value } from '../resolve/value.ts';
import { commaList, sql, type Sql } from '../sql.ts';
import type { Type } from '../types.ts';
import type { Compiler } from './compiler.ts';

/**
 * Nulls come last in both directions by default. The clause is omitted for non-null datetimes, so that the newest
 * rows are read from the end of an index.
 */
export function sortDirection(item: OrderItem, type?: Type): Sql {
  if (item.descending && item.nulls === null && type?.kind === 'datetime' && !type.nullable)
    return sql` desc`;
  const down = item.descending ? sql` desc` : sql``;
  return item.nulls === 'first' ? sql`${down} nulls first` : sql`${down} nulls last`;
}

/** A sort key. Strings are sorted by bytes. A bare `true` would be read as a column ordinal. */
export function sortKey(fragment: Sql, type: Type): Sql {
  if (type.kind === 'string') return sql`(${fragment}) collate "C"`;
  return type.kind === 'boolean' ? sql`(${fragment})::bool` : fragment;
}

/** Compiled sort keys. */
export interface OrderItems {
  readonly sql: Sql;
  readonly values: readonly Value[];
  /** Whether each is descending, and where its nulls are. */
  readonly directions: readonly unknown[];
}

/**
 * The ORDER BY items of an aggregate or a window.
 * @param shared values whose SQL equal items must have; PostgreSQL compares the keys of a DISTINCT aggregate by their SQL
 */
export function orderItems(
  compiler: Compiler,
  items: readonly OrderItem[],
  scope: Scope,
  shared: readonly Value[] = [],
): OrderItems {
  const values = items.map((item) => {
    if (item.fill !== null) throw scope.statement.error('WITH FILL is not supported.', item.fill);
    const value = compiler.value(item.expression, scope);
    return shared.find((one) => isSame(one, value)) ?? value;
  });
  const fragments = items.map((item, index) => {
    const value = values[index];
    return value === undefined ? sql`` : sql`${sortKey(value.sql, value.type)}${sortDirection(item)}`;
  });
  return {
    sql: commaList(fragments),
    values,
    directions: items.map(({ descending, nulls }) => [descending, nulls]),
  };
}
