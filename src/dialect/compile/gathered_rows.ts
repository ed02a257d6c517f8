import type { Grouping } from '../resolve/scope.ts';
import { bind, commaList, identifier, joinSql, replaceFragments, sql, type Sql } from '../sql.ts';
import type { Type } from '../types.ts';

/** What all gathering aggregates of a query may take in memory, roughly. */
const maxGatheredBytes = 128 * 1024 ** 2;

/** What an aggregate stores of each value besides its text. */
const bytesOfValue = 40;

/** The memory that an aggregate needs for the values of one row. */
export function gatheredBytes(
  values: readonly { readonly sql: Sql; readonly type: Type }[],
  filters: readonly Sql[],
): Sql {
  const sizes = values.flatMap(({ sql: value, type }) => {
    switch (type.kind) {
      case 'string':
        return [sql`coalesce(octet_length(${value}), 0)`];
      case 'json':
      case 'array':
      case 'tuple':
      case 'map':
        return [sql`coalesce(octet_length((${value})::text), 0)`];
      default:
        return [];
    }
  });
  const size = joinSql([bind(String(bytesOfValue * Math.max(values.length, 1)), 'int4'), ...sizes], ' + ');
  return filters.length === 0 ? size : sql`case when ${joinSql(filters, ' and ')} then ${size} else 0 end`;
}

/**
 * A condition that holds until the gathered values take too much memory, and then fails the query: repeat() rejects
 * the length. A result without the other values would be wrong.
 */
export const withinMemory = (gathered: Sql): Sql =>
  sql`case when ${gathered} <= ${bind(String(maxGatheredBytes), 'int8')} then true
    else repeat(' ', (1200000000 + ${gathered} % 1000)::int4) is null end`;

/**
 * The inner query of a grouping query with aggregates that gather values. It reads an inner query with a running total
 * of their size, so that PostgreSQL stops before they fill its memory.
 * @param source FROM and WHERE
 * @param groupSql the GROUP BY clause
 */
export function gatheredRows(grouping: Grouping, source: Sql, groupSql: Sql): Sql {
  const { rows } = grouping;
  const rowValues = new Set(grouping.rowValues);
  const columns = new Map<Sql, Sql>();
  const read = (fragment: Sql): Sql | undefined => {
    if (!rowValues.has(fragment)) return undefined;
    const column = columns.get(fragment) ?? identifier(`v${columns.size + 1}`);
    columns.set(fragment, column);
    return sql`${rows}.${column}`;
  };
  const outer = [
    ...grouping.keys.map(({ name }) => sql`${rows}.${name} as ${name}`),
    ...grouping.aggregates.map((one) => sql`${replaceFragments(one.sql, read)} as ${one.name}`),
  ];
  const total = sql`sum(${joinSql(grouping.gatheredSizes, ' + ')}) over (rows unbounded preceding)`;
  const inner = [
    ...grouping.keys.map((key) => sql`${key.sql} as ${key.name}`),
    ...[...columns].map(([fragment, column]) => sql`${fragment} as ${column}`),
    sql`${total} as ${identifier('gathered')}`,
  ];
  return sql`select ${commaList(outer)} from (select ${commaList(inner)}${source}) as ${rows}${groupSql}`;
}
