import type { DateTime } from 'luxon';
import type { Expression, From, Select } from '../../dialect/ast.ts';
import { buildDerivedTable, buildExpression, buildField, buildTable } from '../../dialect/ast_builders.ts';
import type { ResolvedRange } from '../dates/date_range.ts';
import type { MathKind } from './math.ts';
import { fieldsNamed, buildNamedSelect, unionOf } from './selects.ts';
import { actorColumn, bucketColumn, resultColumn, valueColumns } from './value_columns.ts';

/** Days over which a math looks back from each day, that day among them; null for others. */
export function windowDays(math: MathKind): number | null {
  if (math === 'weekly_active') return 7;
  return math === 'monthly_active' ? 30 : null;
}

/**
 * How the number of active actors changes from day to day. An actor who has an event on a day is active on that day and
 * on those of the window behind it; days that two events of one actor share count once, because each event's days end
 * where the next event is. So the cost is that of the actors' days, however long the window.
 * @param rows columns of values, `bucket_start` as a day, `actor`; each once
 * @returns columns of values, `bucket_start` and `result`: how many more are active than on the day before
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
  const begun = change('first_day', 'actors');
  const both = unionOf([begun, change('end_day', '-actors')]);
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
 * The sum over all intervals of a range, from how the numbers change: a change counts in each interval whose day it
 * does not come after.
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

/** Intervals of one day or one week each. */
const wholeDays = (last: DateTime, interval: 'day' | 'week' | 'month', count: number): Expression =>
  buildExpression(`least(greatest(intDiv(toDate({last}) - ${bucketColumn} + {days}, {days}), 0), {count})`, {
    last: { value: formatDay(last) },
    days: { value: interval === 'day' ? 1 : 7 },
    count: { value: count },
  });

/** Shorter ones, of which a day that is cut or on which clocks are set has fewer or more. */
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

/** A sum as a tree that is not deep. */
function balancedSum(terms: readonly Expression[]): Expression {
  const [first, second] = terms;
  if (first === undefined || second === undefined) return first ?? buildExpression('0');
  const middle = Math.ceil(terms.length / 2);
  return buildExpression('{left} + {right}', {
    left: balancedSum(terms.slice(0, middle)),
    right: balancedSum(terms.slice(middle)),
  });
}
