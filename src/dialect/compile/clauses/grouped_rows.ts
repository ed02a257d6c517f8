import type { GroupBy, Query } from '../../ast.ts';
import type { Grouping, Scope } from '../../resolve/scope.ts';
import {
  bind,
  commaList,
  generatedName,
  identifier,
  joinSql,
  rawSql,
  replaceFragments,
  sql,
  type Sql,
} from '../../sql.ts';
import type { Type } from '../../types.ts';
import { columnAlias } from '../compiler.ts';
import { postgresType } from '../expressions/coerce.ts';

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

/** A value in a type whose values PostgreSQL can compare, and fast: texts by their bytes. */
export const comparable = ({ sql: value, type }: { readonly sql: Sql; readonly type: Type }): Sql => {
  if (type.kind === 'json') return sql`(${value})::jsonb`;
  return type.kind === 'string' ? sql`(${value}) collate "C"` : value;
};

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
function gatheredRows(grouping: Grouping, source: Sql, groupSql: Sql): Sql {
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
  const inner = [
    ...grouping.keys.map((key) => sql`${key.sql} as ${key.name}`),
    ...[...columns].map(([fragment, column]) => sql`${fragment} as ${column}`),
  ];
  return sql`select ${commaList(outer)} from (${withRunningTotal(grouping, inner, source)}) as ${rows}${groupSql}`;
}

/** Rows with the size of what aggregates have kept so far, as the column `gathered`. */
function withRunningTotal(grouping: Grouping, columns: readonly Sql[], source: Sql): Sql {
  const sizesOfAll = grouping.gathered.flatMap(({ size, distinctBy }) => (distinctBy === null ? [size] : []));
  const sets = grouping.gathered.flatMap(({ size, distinctBy }) =>
    distinctBy === null ? [] : [{ size, distinctBy }],
  );
  const total = (sizes: readonly Sql[]): Sql =>
    sql`sum(${joinSql(sizes, ' + ')}) over (rows unbounded preceding) as ${identifier('gathered')}`;
  if (sets.length === 0) return sql`select ${commaList([...columns, total(sizesOfAll)])}${source}`;
  // A value counts in the first row of its group that has it.
  const sized = sets.map(({ size, distinctBy }, index) => {
    const group = commaList([...grouping.keys.map((key) => key.sql), ...distinctBy]);
    return { size, group, sizeName: identifier(`s${index + 1}`), numberName: identifier(`n${index + 1}`) };
  });
  const counted = generatedName('counted');
  const inner = [
    ...columns,
    ...(sizesOfAll.length === 0 ? [] : [sql`${joinSql(sizesOfAll, ' + ')} as ${identifier('s0')}`]),
    ...sized.flatMap(({ size, group, sizeName, numberName }) => [
      sql`${size} as ${sizeName}`,
      sql`row_number() over (partition by ${group}) as ${numberName}`,
    ]),
  ];
  const sizes = [
    ...(sizesOfAll.length === 0 ? [] : [sql`${counted}.${identifier('s0')}`]),
    ...sized.map(
      ({ sizeName, numberName }) =>
        sql`case when ${counted}.${numberName} = 1 then ${counted}.${sizeName} else 0 end`,
    ),
  ];
  return sql`select ${counted}.*, ${total(sizes)} from (select ${commaList(inner)}${source}) as ${counted}`;
}

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
