import type { Query } from '../ast.ts';
import type { Grouping, Scope } from '../resolve/scope.ts';
import { commaList, sql, type Sql } from '../sql.ts';
import { columnAlias } from './compiler.ts';
import { groupedRows } from './grouped_rows.ts';
import { postgresType } from './json_values.ts';

/** @throws DialectError for WITH TOTALS in a subquery, where the totals row would be among the others */
export function rejectTotals(query: Query, { statement }: Scope): void {
  if (query.kind === 'select' && query.groupBy?.withTotals)
    throw statement.error(
      'WITH TOTALS is allowed only in the outermost SELECT.',
      query.groupBy,
      'Use GROUP BY ROLLUP(…).',
    );
}

/**
 * The totals row, as FROM under the alias of the groups: aggregates of all rows, null keys.
 * @param source FROM and WHERE
 */
export function totalsRow(grouping: Grouping, source: Sql): Sql {
  const { keys, withoutKeys: ofAllRows } = grouping;
  const nulls = keys.map(({ name, type }) => sql`null::${postgresType(type)} as ${name}`);
  const aggregates = ofAllRows.isUsed ? groupedRows(ofAllRows, source, null, null) : sql`select`;
  return sql` from (select ${commaList([...nulls, sql`whole.*`])} from (${aggregates}) as whole) as ${grouping.alias}`;
}

/**
 * Whether a row belongs to one of the groups. Keys are compared as JSON, where nulls are equal and rows can be
 * hashed.
 * @param groups FROM and WHERE
 */
export function isInGroups({ alias, keys }: Grouping, groups: Sql): Sql {
  const ofRow = commaList(keys.map((key) => key.sql));
  const ofGroup = commaList(keys.map(({ name }) => sql`${alias}.${name}`));
  return sql`jsonb_build_array(${ofRow}) in (select jsonb_build_array(${ofGroup})${groups})`;
}

/** The rows in order, followed by the totals row. */
export function appendTotals(rows: Sql, totals: Sql, columnCount: number): Sql {
  const columns = commaList(Array.from({ length: columnCount }, (_, index) => columnAlias(index + 1)));
  const numbered = sql`select groups.*, row_number() over () as ordinal from (${rows}) as groups`;
  return sql`select ${columns} from (${numbered} union all select totals.*, null from (${totals}) as totals) as all_rows order by ordinal`;
}
