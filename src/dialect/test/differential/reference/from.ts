import type { ArrayJoin, From, Join, Query } from '../../../ast.ts';
import { conditionOf, meaningOf } from './expressions.ts';
import { rowsOfQuery } from './queries.ts';
import type { ReferenceScope, ReferenceWorld, Row, ScopeColumn } from './scope.ts';
import { itemOf, type ReferenceType, withNull } from './types.ts';
import { AmbiguousResultError, defaultOf, listOf, unsupported, type Value } from './values.ts';

/** The columns and rows of FROM. */
interface Source {
  readonly columns: readonly ScopeColumn[];
  readonly rows: readonly Row[];
}

export function sourceOf(from: From | null, scope: ReferenceScope): Source {
  if (from === null) return { columns: [], rows: [{ cells: new Map() }] };
  switch (from.kind) {
    case 'table': {
      if (from.sample !== null) return unsupported('SAMPLE');
      const name = from.path.map((part) => part.text).join('.');
      const alias = from.alias?.text ?? name;
      const query = scope.ctes.get(name);
      if (query !== undefined) return derived(query, alias, scope.world, scope.ctes);
      const table = scope.world.tables.get(name) ?? unsupported(`The table ${name}.`);
      return named(
        alias,
        [...table.columns],
        table.rows.map((row) => [...table.columns.keys()].map((column) => row.get(column) ?? null)),
      );
    }
    case 'derived_table':
      return derived(from.query, from.alias?.text ?? null, scope.world, scope.ctes);
    case 'join':
      return joined(from, scope);
    case 'table_function':
      return unsupported('A table function.');
  }
}

function derived(
  query: Query,
  alias: string | null,
  world: ReferenceWorld,
  ctes: ReadonlyMap<string, Query>,
): Source {
  const { columns, rows } = rowsOfQuery(query, world, ctes);
  return named(
    alias,
    columns.map(({ name, type }) => [name, type]),
    rows,
  );
}

function named(
  table: string | null,
  columns: readonly (readonly [string, ReferenceType])[],
  rows: readonly (readonly Value[])[],
): Source {
  const scoped = columns.map(([name, type]) => ({ table, name, key: `${table ?? ''}.${name}`, type }));
  return {
    columns: scoped,
    rows: rows.map((values) => ({
      cells: new Map(scoped.map(({ key }, index) => [key, values[index] ?? null])),
    })),
  };
}

function joined(join: Join, scope: ReferenceScope): Source {
  const { type, strictness, constraint } = join;
  const [left, right] = [sourceOf(join.left, scope), sourceOf(join.right, scope)];
  const columns = [...left.columns, ...right.columns];
  if (constraint?.kind === 'using') return unsupported('USING');
  const condition =
    constraint === null
      ? undefined
      : conditionOf(constraint.condition, { ...scope, columns, inJoin: true, aliases: new Map() });
  const combine = (first: Row, second: Row): Row => ({ cells: new Map([...first.cells, ...second.cells]) });
  const pairs = left.rows.flatMap((first) =>
    right.rows
      .map((second) => ({ first, second, row: combine(first, second) }))
      .filter(({ row }) => condition === undefined || condition.of(row) === true),
  );
  const isMatched = (row: Row): boolean => pairs.some(({ first, second }) => first === row || second === row);
  if (strictness === 'semi' || strictness === 'anti') {
    const kept = type === 'right' ? right : left;
    const rows = kept.rows.filter((row) => isMatched(row) === (strictness === 'semi'));
    return { columns: kept.columns, rows };
  }
  if (strictness === 'asof') return unsupported('ASOF');
  if (strictness === 'any') checkOneMatch(type === 'right' ? pairs.map(swap) : pairs);
  const empty = ({ columns: missing }: Source): Row => ({
    cells: new Map(missing.map(({ key }) => [key, null])),
  });
  const keepsLeft = type === 'left' || type === 'full';
  const keepsRight = type === 'right' || type === 'full';
  return {
    columns: [
      ...left.columns.map((column) => (keepsRight ? nullableColumn(column) : column)),
      ...right.columns.map((column) => (keepsLeft ? nullableColumn(column) : column)),
    ],
    rows: [
      ...pairs.map(({ row }) => row),
      ...(keepsLeft
        ? left.rows.filter((row) => !isMatched(row)).map((row) => combine(row, empty(right)))
        : []),
      ...(keepsRight
        ? right.rows.filter((row) => !isMatched(row)).map((row) => combine(empty(left), row))
        : []),
    ],
  };
}

interface Pair {
  readonly first: Row;
  readonly second: Row;
}

const swap = ({ first, second }: Pair): Pair => ({ first: second, second: first });

/** @throws AmbiguousResultError if a row of an ANY join has several matches */
function checkOneMatch(pairs: readonly Pair[]): void {
  if (new Set(pairs.map(({ first }) => first)).size < pairs.length)
    throw new AmbiguousResultError('Any of several matches.');
}

const nullableColumn = (column: ScopeColumn): ScopeColumn =>
  column.type.nullable ? column : { ...column, type: { ...withNull(column.type), unmatched: true } };

/** Repeats rows for the items of an array. */
export function withArrayJoin(source: Source, arrayJoin: ArrayJoin | null, scope: ReferenceScope): Source {
  if (arrayJoin === null) return source;
  const [item, another] = arrayJoin.items;
  if (item?.kind !== 'alias' || another !== undefined) return unsupported('ARRAY JOIN of several arrays.');
  const array = meaningOf(item.expression, { ...scope, columns: source.columns });
  if (array.type.kind !== 'array') return unsupported('ARRAY JOIN of a value.');
  const type = itemOf(array.type);
  const key = `array ${item.name.text}`;
  return {
    columns: [...source.columns, { table: null, name: item.name.text, key, type }],
    rows: source.rows.flatMap((row) => {
      const values = listOf(array.of(row));
      const given = values.length === 0 && arrayJoin.left ? [defaultOf(type)] : values;
      return given.map((value) => ({ cells: new Map([...row.cells, [key, value]]) }));
    }),
  };
}
