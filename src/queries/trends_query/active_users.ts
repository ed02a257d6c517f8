import type { Expression, From, Select } from '@exportd/dialect/ast';
import { buildDerivedTable, buildExpression, buildField, buildTable } from '@exportd/dialect/ast_builders';
import type { DateTime } from 'luxon';
import { firstOfDay } from '../../filters/moments.ts';
import type { ResolvedRange } from '../dates.ts';
import { actorColumn, bucketColumn, resultColumn, valueColumns } from './line_keys.ts';
import { buildNamedSelect, fieldsNamed, unionOf } from './named_select.ts';
import { type Question, bucketOf, intervalKeys } from './question.ts';
import { type SeriesEvents, type SeriesPosition, seriesEventsSince } from './series.ts';

/**
 * The events from the start of the window of an interval to a time.
 * @param start of the interval
 */
export const eventsOfWindow = (
  position: SeriesPosition,
  start: DateTime,
  days: number,
  range: ResolvedRange,
): SeriesEvents => seriesEventsSince(position, firstOfDay(start).minus({ days: days - 1 }), range);

/** A number for each interval: of the actors active in the window that ends with its first day. */
export function activeUsersOfEachInterval(
  position: SeriesPosition,
  range: ResolvedRange,
  days: number,
): Question {
  const keys = intervalKeys(range, 'day');
  return {
    events: eventsOfWindow(position, range.buckets[0] ?? range.from, days, range),
    bucket: bucketOf('day'),
    resultsOf: (rows, { values }) => activeChanges(rows, days, values.length),
    total: sumOfChanges(range),
    rowsPerLine: range.buckets.length + days * 2 + 1,
    length: range.buckets.length,
    dataOf: (changes) => summedUp(changes, keys),
  };
}

/**
 * How the number of active actors changes from day to day. An actor with an event on a day is active on that day and on
 * the following days of the window. Days that two events of one actor share are counted once, because the days of an
 * event end at the next event. The cost is therefore that of the actors' days, however long the window.
 * @param rows distinct rows with the columns of values, `bucket_start` as a day, and `actor`
 * @returns columns of values, `bucket_start` and `result`: how many more actors are active than on the day before
 */
function activeChanges(rows: From, days: number, count: number): Select {
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
function sumOfChanges({ interval, buckets }: ResolvedRange): Expression {
  const [first] = buckets;
  const last = buckets.at(-1);
  if (first === undefined || last === undefined) return buildExpression(`sum(${resultColumn})`);
  const intervals =
    interval === 'hour' || interval === 'minute'
      ? eachDay(buckets)
      : wholeDays(last, interval, buckets.length);
  return buildExpression(`sum(${resultColumn} * {intervals})`, { intervals });
}

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

const formatDay = (bucket: DateTime): string => bucket.toFormat('yyyy-MM-dd');

/** The running sum of changes on the day of each interval. */
function summedUp(changes: ReadonlyMap<string, number>, intervalDays: readonly string[]): readonly number[] {
  const days = [...changes].sort(([one], [other]) => (one < other ? -1 : 1));
  let [next, active] = [0, 0];
  return intervalDays.map((day) => {
    for (let change = days[next]; change !== undefined && change[0] <= day; change = days[next]) {
      active += change[1];
      next += 1;
    }
    return active;
  });
}
