import { DateTime } from 'luxon';
import type { Expression } from '../../dialect/ast.ts';
import { buildExpression } from '../../dialect/ast_builders.ts';
import type { Interval } from '../dates/date_range.ts';

const starts: Readonly<Record<Interval, Expression>> = {
  minute: buildExpression('toStartOfMinute(timestamp)'),
  hour: buildExpression('toStartOfHour(timestamp)'),
  // Days are told by their dates, which costs less than the moment at which each begins.
  day: buildExpression('toDate(timestamp)'),
  week: buildExpression('toStartOfWeek(timestamp)'),
  month: buildExpression('toStartOfMonth(timestamp)'),
};

/** Where the interval of an event begins: a day, or a time for those that are shorter. */
export const bucketOf = (interval: Interval): Expression => starts[interval];

/** What tells intervals apart, of what a row says. */
export function keyOfRow(shown: unknown): string {
  const text = String(shown);
  return text.includes('T') ? String(DateTime.fromISO(text).toMillis()) : text;
}

/** The same of an interval's beginning. */
export const keyOfBucket = (bucket: DateTime, interval: Interval): string =>
  interval === 'hour' || interval === 'minute' ? String(bucket.toMillis()) : bucket.toFormat('yyyy-MM-dd');
