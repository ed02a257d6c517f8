import type { Grouping } from '../resolve/scope.ts';
import {
  bind,
  commaList,
  generatedName,
  identifier,
  joinSql,
  replaceFragments,
  sql,
  type Sql,
} from '../sql.ts';
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
