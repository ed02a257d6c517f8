import type { Join } from '../ast.ts';
import { Projection } from '../resolve/projection.ts';
import { optionalColumn } from '../resolve/query_relation.ts';
import type { Scope } from '../resolve/scope.ts';
import { commaList, identifier, joinSql, rawSql, sql, type Sql } from '../sql.ts';
import { distinctOnRows } from './distinct_on.ts';
import { compareColumns, type JoinComparison, type JoinConditions } from './join_conditions.ts';
import { postgresType } from './json_values.ts';
import { sortKey } from './order_items.ts';
import { unchanged, type SingleMatchRows, type MatchSides } from './single_match_rows.ts';
import { asColumn } from './using_columns.ts';

/**
 * ASOF: each row with its closest match. The searched side is reduced to one row per value, and its rows are
 * numbered. The first row of each key stores the values and row numbers of that key as arrays. A bisection in the
 * array finds the closest row, so rows of a key are never compared pairwise.
 * @throws DialectError
 */
export function asofJoin(join: Join, { kept, searched, on }: MatchSides, scope: Scope): SingleMatchRows {
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
