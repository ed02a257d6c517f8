import {
  childrenOf,
  type Expression,
  type GroupBy,
  type Node,
  type OrderItem,
  type Select,
  type Star,
  walk,
} from '../../ast.ts';
import { printExpression } from '../../print.ts';
import { resolveRow } from '../../resolve/fields.ts';
import type { RelationFields } from '../../resolve/relation.ts';
import { Grouping, type Scope } from '../../resolve/scope.ts';
import { identityOf, isSame, noTraits, readFrom, type Value } from '../../resolve/value.ts';
import { commaList, rawSql, sql, type Sql } from '../../sql.ts';
import type { Compiler } from '../compiler.ts';
import { columnValue, defaultColumnName } from '../expressions/field_access.ts';

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
