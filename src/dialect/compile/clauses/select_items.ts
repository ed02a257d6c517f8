import {
  childrenOf,
  type Expression,
  type GroupBy,
  type Node,
  type OrderItem,
  type Query,
  type Select,
  type Star,
  walk,
} from '../../ast.ts';
import { printExpression } from '../../print.ts';
import type { RelationFields } from '../../resolve/relation.ts';
import { Grouping, resolveRow, type Scope } from '../../resolve/scope.ts';
import { identityOf, isSame, noTraits, readFrom, type Value } from '../../resolve/value.ts';
import {
  bind,
  commaList,
  generatedName,
  identifier,
  joinSql,
  rawSql,
  replaceFragments,
  rowCount,
  type Sql,
  sql,
} from '../../sql.ts';
import type { Type } from '../../types.ts';
import { columnAlias, type Compiler } from '../compiler.ts';
import { postgresType } from '../expressions/coerce.ts';
import { columnValue, defaultColumnName } from '../expressions/field_access.ts';

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
 * The inner query of a grouping query, with keys and aggregates as columns. If it only counts distinct values, and
 * rows, an inner query groups by the values first, because PostgreSQL sorts for `count(distinct …)` but hashes groups.
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
  const { keys, value, name, rows } = counted;
  const selected = [
    ...keys.map((key) => sql`${key.sql} as ${key.name}`),
    sql`${value} as ${identifier('v')}`,
  ];
  const [number, sum] =
    rows === null
      ? [[], []]
      : [[sql`${rowCount} as ${identifier('n')}`], [sql`coalesce(sum(seen.n), 0)::int8 as ${rows}`]];
  const ordinals = (count: number): Sql =>
    commaList(Array.from({ length: count }, (_, index) => rawSql(String(index + 1))));
  const values = sql`select ${commaList([...selected, ...number])}${source} group by ${ordinals(selected.length)}`;
  const columns = [
    ...keys.map((key) => sql`seen.${key.name} as ${key.name}`),
    sql`count(seen.${identifier('v')}) as ${name}`,
    ...sum,
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

/** A column of a query result. */
export interface Output {
  readonly name: string;
  readonly value: Value;
  readonly node: Node;
}

/** The columns of SELECT with stars expanded. @throws DialectError */
export function selectItems(compiler: Compiler, select: Select, scope: Scope): readonly Output[] {
  return select.columns.flatMap((item): readonly Output[] => {
    if (item.kind === 'star') return starItems(compiler, item, scope);
    if (item.kind === 'columns')
      throw scope.statement.error('COLUMNS() is not supported.', item, 'List the columns.');
    const name = defaultColumnName(item) ?? printExpression(item);
    return [{ name, value: compiler.value(item, scope), node: item }];
  });
}

function starItems(compiler: Compiler, star: Star, scope: Scope): readonly Output[] {
  const relation = starFields(star, scope);
  const names = relation.star().filter((name) => !star.exclude.some(({ text }) => text === name));
  for (const { text, start, end } of star.exclude)
    if (relation.field(text) === undefined)
      throw scope.statement.error(`Unable to resolve field: ${text}`, { kind: 'name', text, start, end });
  return names.flatMap((name): readonly Output[] => {
    const replaced = star.replace.find((alias) => alias.name.text === name);
    if (replaced !== undefined)
      return [{ name, value: compiler.value(replaced.expression, scope), node: replaced }];
    const relationField = relation.field(name);
    if (relationField?.kind !== 'column') return [];
    const value = columnValue(relationField, star);
    const key = scope.grouping?.keyOf(value);
    const column: Value = key === undefined ? value : readFrom(value, key, noTraits);
    const { windowSubquery } = scope;
    const outer: Value =
      windowSubquery === undefined
        ? column
        : readFrom(column, { sql: windowSubquery.column(identityOf(column), column.sql) }, column.traits);
    return [{ name, value: outer, node: star }];
  });
}

function starFields(star: Star, scope: Scope): RelationFields {
  const { relations, statement } = scope;
  if (star.table.length === 0) {
    const [only, ...more] = relations;
    if (only === undefined) throw statement.error('`*` requires a table in FROM.', star);
    if (more.length > 0)
      throw statement.error(
        "Cannot use '*' without table name when there are multiple tables in the query",
        star,
        `For example, write ${only.name ?? 'table'}.*.`,
      );
    return only;
  }
  const path = star.table.map(({ text }) => text).join('.');
  const found = relations.find(({ name }) => name === path);
  if (found !== undefined) return found;
  const row = resolveRow(star.table, scope);
  if (row === undefined) throw statement.error(`Unknown table \`${path}\`.`, star);
  if (row.kind === 'nested') return row.fields;
  throw statement.error(row.summary, star, row.suggestion);
}

/** The aliases of SELECT. @throws DialectError for an alias defined twice */
export function collectAliases(select: Select, scope: Scope): ReadonlyMap<string, Expression> {
  const aliases = new Map<string, Expression>();
  for (const item of [...select.columns, ...select.distinctOn])
    walk(item, {
      enter: (node) => {
        if (node.kind === 'alias') {
          const known = aliases.get(node.name.text);
          if (known !== undefined && printExpression(known) !== printExpression(node.expression))
            throw scope.statement.error(
              `Cannot redefine an alias with the name: ${node.name.text}`,
              node.name,
            );
          aliases.set(node.name.text, known ?? node.expression);
        }
        return node.kind !== 'subquery' && node.kind !== 'star';
      },
    });
  return aliases;
}

/** Resolves an ordinal: `1` is the first column. @throws DialectError if there is no such column */
function resolveOrdinal(node: Expression, select: Select, scope: Scope): Expression {
  if (node.kind !== 'number' || !/^\d+$/.test(node.text)) return node;
  const item = select.columns[Number(node.text) - 1];
  if (item === undefined || item.kind === 'star')
    throw scope.statement.error(`SELECT has no column ${node.text}.`, node);
  return item;
}

/** An expression outside the select list. */
export function compileOutput(compiler: Compiler, node: Expression, select: Select, scope: Scope): Output {
  const item = resolveOrdinal(node, select, scope);
  return { name: '', node, value: compiler.value(item, scope) };
}

/** A sort key. */
export interface Order extends Output {
  readonly item: OrderItem;
  /** The ordinal of the equal column of SELECT, from 1. */
  readonly position: number | null;
}

/** @throws DialectError */
export function compileOrder(
  compiler: Compiler,
  item: OrderItem,
  select: Select,
  outputs: readonly Output[],
  scope: Scope,
): Order {
  if (item.fill !== null)
    throw scope.statement.error(
      'WITH FILL is not supported.',
      item.fill,
      'Join numbers(n) to fill the gaps.',
    );
  const one = compileOutput(compiler, item.expression, select, scope);
  const at = outputs.findIndex(({ value }) => isSame(value, one.value));
  return { ...one, item, position: at === -1 ? null : at + 1 };
}

/**
 * The keys of GROUP BY ALL: the columns of SELECT, and of columns with aggregates the largest subexpressions without
 * one.
 */
function groupByAllKeys(compiler: Compiler, select: Select, rows: Scope): readonly Value[] {
  const scope: Scope = { ...rows, grouping: new Grouping(sql`nothing`) };
  return selectItems(compiler, select, scope).flatMap(({ value, node }) =>
    keysIn(compiler, value, node, scope),
  );
}

function keysIn(compiler: Compiler, value: Value, node: Node, scope: Scope): readonly Value[] {
  const { aggregate, window, column } = value.traits;
  if (aggregate === null && window === null) return column === null ? [] : [value];
  if (node === aggregate) return [];
  const inside: Scope =
    node.kind === 'alias'
      ? { ...scope, expandingAliases: [...scope.expandingAliases, node.expression] }
      : scope;
  return partsOf(node).flatMap((part) => keysIn(compiler, compiler.value(part, inside), part, inside));
}

/** Nodes that consist of expressions but are not expressions. */
const wrapperKinds: ReadonlySet<Node['kind']> = new Set(['branch', 'entry']);
const nonValueKinds: ReadonlySet<Node['kind']> = new Set([
  'name',
  'type',
  'named_type',
  'window',
  'lambda',
  'order_item',
]);

const isValue = (node: Node): node is Expression =>
  !wrapperKinds.has(node.kind) && !nonValueKinds.has(node.kind);

const partsOf = (node: Node): readonly Expression[] =>
  childrenOf(node).flatMap((child) =>
    wrapperKinds.has(child.kind) ? partsOf(child) : isValue(child) ? [child] : [],
  );

/** The GROUP BY clause; adds its keys to `grouping`. @throws DialectError */
export function groupSql(
  compiler: Compiler,
  groupBy: GroupBy,
  select: Select,
  rows: Scope,
  grouping: Grouping,
): Sql {
  const scope: Scope = { ...rows, context: 'GROUP BY' };
  const isPlain = groupBy.mode === 'plain' || groupBy.mode === 'all';
  if (groupBy.withTotals && !isPlain)
    throw scope.statement.error(
      'WITH TOTALS cannot be combined with ROLLUP, CUBE or GROUPING SETS.',
      groupBy,
      'Remove it: ROLLUP(…) already returns a row for all groups.',
    );
  const positions = (items: readonly Expression[]): Sql =>
    commaList(
      items
        .map((item) => resolveOrdinal(item, select, scope))
        .flatMap((item) => (item.kind === 'tuple' ? item.items : [item]))
        .map((item) => {
          const value = compiler.value(item, scope);
          if (value.traits.window !== null)
            throw scope.statement.error('A window function is not allowed in GROUP BY.', item);
          return position(value);
        }),
    );
  const position = (value: Value): Sql => {
    grouping.addKey(value, !isPlain);
    return rawSql(String(grouping.positionOf(value)));
  };
  const plain = groupBy.items.flatMap((item) => (item.kind === 'grouping_set' ? [] : [item]));
  if (hasEmptySet(groupBy)) grouping.addEmptySet();
  switch (groupBy.mode) {
    case 'all': {
      const keys = groupByAllKeys(compiler, select, rows);
      return keys.length === 0 ? sql`` : sql` group by ${commaList(keys.map(position))}`;
    }
    case 'plain':
      return sql` group by ${positions(plain)}`;
    case 'rollup':
      return sql` group by rollup(${positions(plain)})`;
    case 'cube':
      return sql` group by cube(${positions(plain)})`;
    case 'grouping_sets': {
      const sets = groupBy.items.map((item) =>
        item.kind === 'grouping_set' ? sql`(${positions(item.items)})` : sql`(${positions([item])})`,
      );
      return sql` group by grouping sets (${commaList(sets)})`;
    }
  }
}

const hasEmptySet = ({ mode, items }: GroupBy): boolean =>
  mode === 'rollup' ||
  mode === 'cube' ||
  items.some((item) => item.kind === 'grouping_set' && item.items.length === 0);
