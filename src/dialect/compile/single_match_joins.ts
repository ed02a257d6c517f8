import type { Join } from '../ast.ts';
import { Projection } from '../resolve/projection.ts';
import { optionalColumn } from '../resolve/query_relation.ts';
import type { Column } from '../resolve/relation.ts';
import type { Scope } from '../resolve/scope.ts';
import { joinSql, rawSql, sql } from '../sql.ts';
import { withNull } from '../types.ts';
import { asofJoin } from './asof_join.ts';
import { type CompiledFrom, mapColumns } from './compiled_from.ts';
import type { Compiler } from './compiler.ts';
import { lateralFirstRow, distinctOnRows } from './distinct_on.ts';
import { compareColumns, hasOnlyKeyConditions, joinConditions } from './join_conditions.ts';
import { postgresType } from './json_values.ts';
import { unchanged, type SingleMatchRows, type MatchSides } from './single_match_rows.ts';
import { asColumn, usingOperands } from './using_columns.ts';

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
      ...column,
      sql: sql`null::${postgresType(column.type)}`,
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
