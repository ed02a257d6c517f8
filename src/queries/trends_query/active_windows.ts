import type { DateTime } from 'luxon';
import type { Expression, From, Select } from '../../dialect/ast.ts';
import { buildDerivedTable, buildExpression, buildField, buildTable } from '../../dialect/ast_builders.ts';
import type { ResolvedRange } from '../dates/resolved_range.ts';
import type { MathKind } from './math.ts';
import { fieldsNamed, buildNamedSelect, unionOf } from './selects.ts';
import { actorColumn, bucketColumn, resultColumn, valueColumns } from './value_columns.ts';

/** Length of the window of a math in days, including the day itself; null for a math without a window. */
export function windowDays(math: MathKind): number | null {
  if (math === 'weekly_active') return 7;
  return math === 'monthly_active' ? 30 : null;
}

/**
 * How the number of active actors changes from day to day. An actor with an event on a day is active on that day and on
 * the following days of the window. Days that two events of one actor share are counted once, because the days of an
 * event end at the next event. The cost is therefore that of the actors' days, however long the window.
 * @param rows distinct rows with the columns of values, `bucket_start` as a day, and `actor`
 * @returns columns of values, `bucket_start` and `result`: how many more actors are active than on the day before
 */
export function activeChanges(rows: From, days: number, count: number): Select {
  const values = valueColumns(count);
  const columns = fieldsNamed(values);
  const following = buildNamedSelect(
    { ...columns, first_day: buildField(bucketColumn), next_day: nextDay(values) },
    { from: rows },
  );
  const endDay = 'next_day is null or next_day > first_day + {days} ? first_day + {days} : next_day';
  const spans = buildNamedSelect(
    {
      ...columns,
      first_day: buildField('first_day'),
      end_day: buildExpression(endDay, { days: { value: days } }),
    },
    { from: buildDerivedTable(following, 'following') },
  );
  const names = [...values, 'first_day', 'end_day'];
  const aggregation = buildNamedSelect(
    { ...fieldsNamed(names), actors: buildExpression('count()') },
    { from: buildDerivedTable(spans, 'spans'), groupBy: names },
  );
  const change = (day: string, amount: string): Select =>
    buildNamedSelect(
      { ...columns, [bucketColumn]: buildField(day), [resultColumn]: buildExpression(amount) },
      { from: buildTable('active_spans') },
    );
  const started = change('first_day', 'actors');
  const both = unionOf([started, change('end_day', '-actors')]);
  const keys = [bucketColumn, ...values];
  return buildNamedSelect(
    { ...fieldsNamed(keys), [resultColumn]: buildExpression(`sum(${resultColumn})`) },
    { from: buildDerivedTable(both, 'changes'), groupBy: keys, queries: { active_spans: aggregation } },
  );
}

/** The next day on which the actor has an event. */
const nextDay = (values: readonly string[]): Expression =>
  buildExpression(
    `lead(${bucketColumn}) over (partition by ${[...values, actorColumn].join(', ')} order by ${bucketColumn})`,
  );

/**
 * The sum over all intervals of a range, computed from changes: a change applies to each interval on or after its day.
 */
export function sumOfChanges({ interval, buckets }: ResolvedRange): Expression {
  const [first] = buckets;
  const last = buckets.at(-1);
  if (first === undefined || last === undefined) return buildExpression(`sum(${resultColumn})`);
  const intervals =
    interval === 'hour' || interval === 'minute'
      ? eachDay(buckets)
      : wholeDays(last, interval, buckets.length);
  return buildExpression(`sum(${resultColumn} * {intervals})`, { intervals });
}

const formatDay = (bucket: DateTime): string => bucket.toFormat('yyyy-MM-dd');

/** Intervals of a day or longer. */
const wholeDays = (last: DateTime, interval: 'day' | 'week' | 'month', count: number): Expression =>
  buildExpression(`least(greatest(intDiv(toDate({last}) - ${bucketColumn} + {days}, {days}), 0), {count})`, {
    last: { value: formatDay(last) },
    days: { value: interval === 'day' ? 1 : 7 },
    count: { value: count },
  });

/** Shorter intervals. Their number varies on partial days and on days with a clock change. */
function eachDay(buckets: readonly DateTime[]): Expression {
  const counts = new Map<string, number>();
  for (const bucket of buckets) counts.set(formatDay(bucket), (counts.get(formatDay(bucket)) ?? 0) + 1);
  const terms = [...counts].map(([day, count]) =>
    buildExpression(`(${bucketColumn} <= toDate({day}) ? {count} : 0)`, {
      day: { value: day },
      count: { value: count },
    }),
  );
  return balancedSum(terms);
}

/** A sum as a balanced tree, to limit the depth of the expression. */
function balancedSum(terms: readonly Expression[]): Expression {
  const [first, second] = terms;
  if (first === undefined || second === undefined) return first ?? buildExpression('0');
  const middle = Math.ceil(terms.length / 2);
  return buildExpression('{left} + {right}', {
    left: balancedSum(terms.slice(0, middle)),
    right: balancedSum(terms.slice(middle)),
  });
}
