import type { Join } from '../ast.ts';
import { Projection } from '../resolve/projection.ts';
import { optionalColumn } from '../resolve/query_relation.ts';
import type { Scope } from '../resolve/scope.ts';
import { derive, type Value } from '../resolve/value.ts';
import { commaList, identifier, joinSql, ownText, sql, type Sql } from '../sql.ts';
import { withNull } from '../types.ts';
import { compareValues } from './comparisons.ts';
import { firstRows } from './first_rows.ts';
import { comparedColumns, type JoinComparison, type JoinConditions } from './join_conditions.ts';
import { sortable } from './order_items.ts';
import { asItIs, type Picked, type Sides } from './picked_rows.ts';
import { columnIn } from './using_columns.ts';

/**
 * ASOF: rows with the closest of their matches. The searched side is cut to one row of each value, with the next closer
 * value beside it: the closest match is the row that matches where the next does not. So PostgreSQL can hash the equal
 * keys. @throws DialectError
 */
export function closestRows(join: Join, { kept, searched, on }: Sides, scope: Scope): Picked {
  const { statement } = scope;
  const closest = inequalityOf(join, on, scope);
  const { operator, left, right, node } = closest;
  const rows = new Projection(statement.uniqueName('closest_match'));
  const sorted = (value: Value): Sql => {
    const { sql: piece, type } = rows.column(columnIn(value));
    return sortable(piece, type);
  };
  const keys = on.keys.map((key) => key.right);
  const partition = sql`partition by ${commaList(keys.map(sorted))} order by ${sorted(right)}`;
  // Of values that are not above, the greatest is the closest; of those that are not below, the smallest.
  const closer = operator === '>' || operator === '>=' ? sql`lead` : sql`lag`;
  const name = identifier('next');
  const next = sql`${closer}(${sorted(right)}) over (${partition}) as ${name}`;
  const ofNext = { left, right: derive(sql`${rows.alias}.${name}`, withNull(right.type)), node };
  const conditions = joinSql(
    [
      ...comparedColumns([...on.keys, closest], asItIs, rows.column, scope),
      sql`${compareValues(operator, ofNext, 'join', statement).sql} is not true`,
      ...on.ofLeft,
    ],
    ' and ',
  );
  return {
    searchedColumn: (column) =>
      join.type === 'left' ? optionalColumn(rows.column(column)) : rows.column(column),
    sql: () => {
      const first = firstRows(rows, searched, [...keys, right], on.ofRight);
      const found = sql`(select *, ${next} from (${first}) as ${rows.alias}) as ${rows.alias}`;
      return sql`${kept.sql()} ${ownText(join.type)} join ${found} on ${conditions}`;
    },
  };
}

/** The one condition that tells how close rows are. @throws DialectError */
function inequalityOf({ constraint, right }: Join, on: JoinConditions, { statement }: Scope): JoinComparison {
  const [closest, second] = on.inequalities;
  const [odd] = on.others;
  const misplaced = odd ?? second?.node;
  if (closest === undefined || misplaced !== undefined || on.keys.length === 0)
    throw statement.error(
      'An ASOF JOIN is joined by equal values of both tables and by one <, <=, > or >= of both.',
      misplaced ?? constraint ?? right,
      misplaced === undefined ? null : 'Put further conditions in WHERE.',
    );
  return closest;
}
