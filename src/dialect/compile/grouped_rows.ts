import type { GroupBy } from '../ast.ts';
import type { Grouping } from '../resolve/scope.ts';
import { gatheredRows } from './gathered_rows.ts';
import { commaList, identifier, rawSql, sql, type Sql } from '../sql.ts';

/**
 * The inner query of a grouping query, with keys and aggregates as columns. If it only counts distinct values, an
 * inner query groups by them first, because PostgreSQL sorts for `count(distinct …)` but hashes groups.
 * @param source FROM and WHERE
 * @param groupSql the GROUP BY clause
 */
export function groupedRows(
  grouping: Grouping,
  source: Sql,
  groupBy: GroupBy | null,
  groupSql: Sql | null,
): Sql {
  if (grouping.gathered.length > 0) return gatheredRows(grouping, source, groupSql ?? sql``);
  const { distinctCount: counted } = grouping;
  if (counted === null || (groupBy !== null && groupBy.mode !== 'plain' && groupBy.mode !== 'all'))
    return sql`select ${commaList(grouping.selected)}${source}${groupSql ?? sql``}`;
  const { keys, value, name } = counted;
  const selected = [
    ...keys.map((key) => sql`${key.sql} as ${key.name}`),
    sql`${value} as ${identifier('v')}`,
  ];
  const ordinals = (count: number): Sql =>
    commaList(Array.from({ length: count }, (_, index) => rawSql(String(index + 1))));
  const values = sql`select ${commaList(selected)}${source} group by ${ordinals(selected.length)}`;
  const columns = [
    ...keys.map((key) => sql`seen.${key.name} as ${key.name}`),
    sql`count(seen.${identifier('v')}) as ${name}`,
  ];
  const groups = keys.length === 0 ? sql`` : sql` group by ${ordinals(keys.length)}`;
  return sql`select ${commaList(columns)} from (${values}) as seen${groups}`;
}
