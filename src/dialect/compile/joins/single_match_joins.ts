import type { Join } from '../../ast.ts';
import { type Column, optionalColumn, Projection, replacedColumn } from '../../resolve/relation.ts';
import type { Scope } from '../../resolve/scope.ts';
import type { Value } from '../../resolve/value.ts';
import { commaList, identifier, joinSql, rawSql, type Sql, sql } from '../../sql.ts';
import { withNull } from '../../types.ts';
import { sortKey } from '../clauses/query_expressions.ts';
import type { Compiler } from '../compiler.ts';
import { postgresType } from '../expressions/coerce.ts';
import { asColumn, type CompiledFrom, mapColumns, usingOperands } from './compiled_from.ts';
import {
  compareColumns,
  hasOnlyKeyConditions,
  type JoinComparison,
  type JoinConditions,
  joinConditions,
} from './join_conditions.ts';

/** The side whose rows are kept, the side that is searched for a match, and the join conditions. */
interface MatchSides {
  readonly kept: CompiledFrom;
  readonly searched: CompiledFrom;
  /** `left` is the kept side. */
  readonly on: JoinConditions;
}

/** The result of a join with at most one match per row. */
interface SingleMatchRows {
  /** Maps columns of the kept side, if an inner query computes its rows. */
  readonly keptColumn?: (column: Column) => Column;
  readonly searchedColumn: (column: Column) => Column;
  readonly sql: () => Sql;
}

const unchanged = (column: Column): Column => column;

/**
 * The first row per combination of keys, by DISTINCT ON. Rows are ordered by the query's ORDER BY, then by the
 * values of the columns read, so that results do not depend on the plan.
 */
function distinctOnRows(
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
function lateralFirstRow(rows: Projection, from: CompiledFrom, conditions: readonly Sql[]): Sql {
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

/**
 * ASOF: each row with its closest match. The searched side is reduced to one row per value, and its rows are
 * numbered. The first row of each key stores the values and row numbers of that key as arrays. A bisection in the
 * array finds the closest row, so rows of a key are never compared pairwise.
 * @throws DialectError
 */
function asofJoin(join: Join, { kept, searched, on }: MatchSides, scope: Scope): SingleMatchRows {
  const { statement } = scope;
  const { operator, left, right } = inequalityOf(join, on, scope);
  if (scope.lambdaParameters.size > 0)
    throw statement.error('ASOF JOIN is not allowed in a lambda.', join.right, 'Move the query to WITH.');
  const rows = new Projection(statement.uniqueName('closest_match'));
  const firstOfKeys = statement.uniqueName('first_of_keys');
  const found = statement.uniqueName('found');
  const [position, values, positions] = [
    identifier('position'),
    identifier('values'),
    identifier('positions'),
  ];
  const conditions = [
    ...compareColumns(on.keys, unchanged, (column) => rows.columnOf(firstOfKeys, column), scope),
    sql`${firstOfKeys}.${values} is not null`,
    ...on.leftOnly,
  ];
  // Cast to the declared type, so that PostgreSQL does not convert the array for each row.
  const typedValue = sql`(${rows.column(asColumn(right)).sql})::${postgresType(right.type)}`;
  const value = sortKey(typedValue, right.type);
  const keys = on.keys.map((key) => key.right);
  const keysOfRow = keys.map((key) => {
    const { sql: fragment, type } = rows.column(asColumn(key));
    return sortKey(fragment, type);
  });
  const closest = closestIn(sql`${firstOfKeys}.${values}`, operator, sortKey(left.sql, left.type));
  return {
    searchedColumn: (column) =>
      join.type === 'left' ? optionalColumn(rows.column(column)) : rows.column(column),
    sql: () => {
      const first = distinctOnRows(
        rows,
        searched,
        [...keys, right],
        [...on.rightOnly, sql`${right.sql} is not null`],
      );
      const withPosition = sql`select *, row_number() over () as ${position} from (${first}) as ${rows.alias}`;
      const inFirstRow = (all: Sql): Sql =>
        sql`case when row_number() over of_keys = 1 then ${all} over of_keys end`;
      const partition = sql`partition by ${commaList(keysOfRow)} order by ${value} rows between unbounded preceding and unbounded following`;
      const numbered = statement.commonTable(
        'numbered',
        sql`select *, ${inFirstRow(sql`array_agg(${value})`)} as ${values}, ${inFirstRow(sql`array_agg(${position})`)} as ${positions} from (${withPosition}) as ${rows.alias} window of_keys as (${partition})`,
      );
      // LEFT and OFFSET fix the join order: PostgreSQL does not know how many rows share a key.
      return sql`${kept.sql()} left join ${numbered} as ${firstOfKeys} on ${joinSql(conditions, ' and ')} cross join lateral (select ${firstOfKeys}.${positions}[${closest}] as ${position} offset 0) as ${found} ${rawSql(join.type)} join ${numbered} as ${rows.alias} on ${rows.alias}.${position} = ${found}.${position}`;
    },
  };
}

/** The index of the closest of ascending values; 0 or one past the end if there is none. */
function closestIn(values: Sql, operator: JoinComparison['operator'], value: Sql): Sql {
  const notAbove = sql`width_bucket(${value}, ${values})`;
  const isEqual = sql`(${values}[${notAbove}] is not distinct from ${value})`;
  const before = operator === '>' || operator === '<=' ? sql`${notAbove} - ${isEqual}::int4` : notAbove;
  return operator === '<' || operator === '<=' ? sql`${before} + 1` : before;
}

/** The inequality that defines closeness. @throws DialectError */
function inequalityOf({ constraint, right }: Join, on: JoinConditions, { statement }: Scope): JoinComparison {
  const [closest, second] = on.inequalities;
  const [otherCondition] = on.others;
  const misplaced = otherCondition ?? second?.node;
  if (closest === undefined || misplaced !== undefined || on.keys.length === 0)
    throw statement.error(
      'ASOF JOIN requires equal columns of both tables and exactly one <, <=, > or >= between them.',
      misplaced ?? constraint ?? right,
      misplaced === undefined ? null : 'Move other conditions to WHERE.',
    );
  return closest;
}

type SingleMatchStrictness = Exclude<Join['strictness'], 'all' | null>;

/** Compiles a join that takes at most one match per row: SEMI, ANTI, ANY or ASOF. @throws DialectError */
export function compileSingleMatchJoin(
  compiler: Compiler,
  join: Join,
  strictness: SingleMatchStrictness,
  left: CompiledFrom,
  right: CompiledFrom,
  scope: Scope,
): CompiledFrom {
  const { type, constraint } = join;
  rejectUnsupportedType(join, strictness, scope);
  const [kept, searched] = type === 'right' ? [right, left] : [left, right];
  const sides = { kept, searched, on: joinConditions(compiler, join, kept, searched, scope) };
  const rows = singleMatchRows(join, strictness, sides, scope);
  const { keptColumn } = rows;
  const ofKept = keptColumn === undefined ? kept : mapColumns(kept, keptColumn);
  const ofSearched = mapColumns(searched, rows.searchedColumn);
  const usingColumns = new Map([...ofSearched.usingColumns, ...ofKept.usingColumns]);
  if (constraint?.kind === 'using')
    for (const name of constraint.columns) {
      const column = asColumn(usingOperands(kept, searched, name, scope.statement).left);
      usingColumns.set(name.text, (keptColumn ?? unchanged)(column));
    }
  const [first, second] = type === 'right' ? [ofSearched, ofKept] : [ofKept, ofSearched];
  const relations = [...first.relations, ...second.relations];
  const tableCount = left.tableCount + right.tableCount;
  const sources = [...left.sources, ...right.sources];
  return { relations, usingColumns, sources, tableCount, isJoin: strictness !== 'anti', sql: rows.sql };
}

function rejectUnsupportedType(
  { type, right }: Join,
  strictness: SingleMatchStrictness,
  { statement }: Scope,
): void {
  const types = strictness === 'asof' ? ['left', 'inner'] : ['left', 'right', 'inner'];
  if (!types.includes(type))
    throw statement.error(
      `A ${type.toUpperCase()} JOIN cannot be ${strictness.toUpperCase()}.`,
      right,
      strictness === 'asof' ? 'Use LEFT or INNER.' : 'Use LEFT, RIGHT or INNER.',
    );
}

function singleMatchRows(
  join: Join,
  strictness: SingleMatchStrictness,
  sides: MatchSides,
  scope: Scope,
): SingleMatchRows {
  if (strictness === 'asof') return asofJoin(join, sides, scope);
  if (strictness === 'anti') return rowsWithoutMatch(sides, scope);
  if (strictness === 'semi') return rowsWithMatch(sides, 'inner', scope);
  return join.type === 'inner' ? rowsOfEachKey(join, sides, scope) : rowsWithMatch(sides, 'left', scope);
}

/** ANTI: rows without a match. Columns of the other side are null. */
function rowsWithoutMatch({ kept, searched, on }: MatchSides, { statement }: Scope): SingleMatchRows {
  const rows = new Projection(statement.uniqueName('without_match'));
  return {
    keptColumn: rows.column,
    searchedColumn: (column) => ({
      ...replacedColumn(column, sql`null::${postgresType(column.type)}`),
      type: withNull(column.type),
    }),
    sql: () => {
      const matches = sql`select 1 from ${searched.sql()} where ${joinSql(on.all, ' and ')}`;
      const source = sql`${kept.sql()} where not exists (${matches})`;
      return sql`(select ${rows.selected} from ${source}) as ${rows.alias}`;
    },
  };
}

/**
 * LEFT SEMI and LEFT ANY, and RIGHT with sides exchanged: rows with their first match. With equality keys the
 * searched side is first reduced to one row per key, so that PostgreSQL can hash it.
 */
function rowsWithMatch(
  { kept, searched, on }: MatchSides,
  type: 'inner' | 'left',
  scope: Scope,
): SingleMatchRows {
  const rows = new Projection(scope.statement.uniqueName('first_match'));
  const searchedColumn = (column: Column): Column =>
    type === 'left' ? optionalColumn(rows.column(column)) : rows.column(column);
  const words = rawSql(`${type} join`);
  if (!hasOnlyKeyConditions(on))
    return {
      searchedColumn,
      sql: () =>
        sql`${kept.sql()} ${words} lateral (${lateralFirstRow(rows, searched, on.all)}) as ${rows.alias} on true`,
    };
  const equalities = compareColumns(on.keys, unchanged, rows.column, scope);
  return {
    searchedColumn,
    sql: () => {
      const first = distinctOnRows(
        rows,
        searched,
        on.keys.map(({ right }) => right),
        on.rightOnly,
      );
      const all = joinSql([...equalities, ...on.leftOnly], ' and ');
      return sql`${kept.sql()} ${words} (${first}) as ${rows.alias} on ${all}`;
    },
  };
}

/** INNER ANY: the first row of each side per key. */
function rowsOfEachKey(join: Join, { kept, searched, on }: MatchSides, scope: Scope): SingleMatchRows {
  const { statement } = scope;
  if (!hasOnlyKeyConditions(on))
    throw statement.error(
      'ANY JOIN requires equal columns of both tables.',
      join.constraint ?? join.right,
      'Use LEFT ANY JOIN.',
    );
  const rows = new Projection(statement.uniqueName('first_row'));
  const others = new Projection(statement.uniqueName('first_match'));
  const equalities = compareColumns(on.keys, rows.column, others.column, scope);
  return {
    keptColumn: rows.column,
    searchedColumn: others.column,
    sql: () => {
      const [keys, otherKeys] = [on.keys.map(({ left }) => left), on.keys.map(({ right }) => right)];
      const first = distinctOnRows(rows, kept, keys, on.leftOnly);
      const matches = distinctOnRows(others, searched, otherKeys, on.rightOnly);
      return sql`(${first}) as ${rows.alias} inner join (${matches}) as ${others.alias} on ${joinSql(equalities, ' and ')}`;
    },
  };
}
