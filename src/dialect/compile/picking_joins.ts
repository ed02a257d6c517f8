import type { Join } from '../ast.ts';
import { Projection } from '../resolve/projection.ts';
import { optionalColumn } from '../resolve/query_relation.ts';
import type { Column } from '../resolve/relation.ts';
import type { Scope } from '../resolve/scope.ts';
import { joinSql, ownText, sql } from '../sql.ts';
import { withNull } from '../types.ts';
import { closestRows } from './closest_rows.ts';
import { type CompiledFrom, mappedNames } from './compiled_from.ts';
import type { Compiler } from './compiler.ts';
import { firstMatch, firstRows } from './first_rows.ts';
import { comparedColumns, isByKeys, joinConditions } from './join_conditions.ts';
import { postgresType } from './json_values.ts';
import { asItIs, type Picked, type Sides } from './picked_rows.ts';
import { columnIn, sidesOf } from './using_columns.ts';

type PickingStrictness = Exclude<Join['strictness'], 'all' | null>;

/** A join that takes at most one match of each row: SEMI, ANTI, ANY and ASOF. @throws DialectError */
export function compilePickingJoin(
  compiler: Compiler,
  join: Join,
  strictness: PickingStrictness,
  left: CompiledFrom,
  right: CompiledFrom,
  scope: Scope,
): CompiledFrom {
  const { type, constraint } = join;
  refuseType(join, strictness, scope);
  const [kept, searched] = type === 'right' ? [right, left] : [left, right];
  const sides = { kept, searched, on: joinConditions(compiler, join, kept, searched, scope) };
  const picked = pickedRows(join, strictness, sides, scope);
  const { keptColumn } = picked;
  const ofKept = keptColumn === undefined ? kept : mappedNames(kept, keptColumn);
  const ofSearched = mappedNames(searched, picked.searchedColumn);
  const merged = new Map([...ofSearched.merged, ...ofKept.merged]);
  if (constraint?.kind === 'using')
    for (const name of constraint.columns) {
      const column = columnIn(sidesOf(kept, searched, name, scope.statement).left);
      merged.set(name.text, (keptColumn ?? asItIs)(column));
    }
  const [first, second] = type === 'right' ? [ofSearched, ofKept] : [ofKept, ofSearched];
  const relations = [...first.relations, ...second.relations];
  const tables = left.tables + right.tables;
  return { relations, merged, tables, isJoin: strictness !== 'anti', sql: picked.sql };
}

function refuseType({ type, right }: Join, strictness: PickingStrictness, { statement }: Scope): void {
  const types = strictness === 'asof' ? ['left', 'inner'] : ['left', 'right', 'inner'];
  if (!types.includes(type))
    throw statement.error(
      `A ${type.toUpperCase()} JOIN cannot be ${strictness.toUpperCase()}.`,
      right,
      strictness === 'asof' ? 'Choose LEFT or INNER.' : 'Choose LEFT, RIGHT or INNER.',
    );
}

function pickedRows(join: Join, strictness: PickingStrictness, sides: Sides, scope: Scope): Picked {
  if (strictness === 'asof') return closestRows(join, sides, scope);
  if (strictness === 'anti') return rowsWithoutMatch(sides, scope);
  if (strictness === 'semi') return rowsWithMatch(sides, 'inner', scope);
  return join.type === 'inner' ? rowsOfEachKey(join, sides, scope) : rowsWithMatch(sides, 'left', scope);
}

/** ANTI: rows that match none. The columns of the other side are null. */
function rowsWithoutMatch({ kept, searched, on }: Sides, { statement }: Scope): Picked {
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
 * LEFT SEMI and LEFT ANY, and RIGHT ones with their sides exchanged: rows with the first of their matches. Where equal
 * values join them, the searched side is cut to one row of each first, so that PostgreSQL can hash it.
 */
function rowsWithMatch({ kept, searched, on }: Sides, type: 'inner' | 'left', scope: Scope): Picked {
  const rows = new Projection(scope.statement.uniqueName('first_match'));
  const searchedColumn = (column: Column): Column =>
    type === 'left' ? optionalColumn(rows.column(column)) : rows.column(column);
  const words = ownText(`${type} join`);
  if (!isByKeys(on))
    return {
      searchedColumn,
      sql: () =>
        sql`${kept.sql()} ${words} lateral (${firstMatch(rows, searched, on.all)}) as ${rows.alias} on true`,
    };
  const equalities = comparedColumns(on.keys, asItIs, rows.column, scope);
  return {
    searchedColumn,
    sql: () => {
      const first = firstRows(
        rows,
        searched,
        on.keys.map(({ right }) => right),
        on.ofRight,
      );
      const all = joinSql([...equalities, ...on.ofLeft], ' and ');
      return sql`${kept.sql()} ${words} (${first}) as ${rows.alias} on ${all}`;
    },
  };
}

/** ANY: of the rows of both sides that are joined by the same values, the first. */
function rowsOfEachKey(join: Join, { kept, searched, on }: Sides, scope: Scope): Picked {
  const { statement } = scope;
  if (!isByKeys(on))
    throw statement.error(
      'An ANY JOIN is joined by values of both tables that are equal.',
      join.constraint ?? join.right,
      'Write LEFT ANY JOIN.',
    );
  const rows = new Projection(statement.uniqueName('first_row'));
  const others = new Projection(statement.uniqueName('first_match'));
  const equalities = comparedColumns(on.keys, rows.column, others.column, scope);
  return {
    keptColumn: rows.column,
    searchedColumn: others.column,
    sql: () => {
      const [keys, otherKeys] = [on.keys.map(({ left }) => left), on.keys.map(({ right }) => right)];
      const first = firstRows(rows, kept, keys, on.ofLeft);
      const matches = firstRows(others, searched, otherKeys, on.ofRight);
      return sql`(${first}) as ${rows.alias} inner join (${matches}) as ${others.alias} on ${joinSql(equalities, ' and ')}`;
    },
  };
}
