import { DateTime } from 'luxon';
import type { Expression } from '../../dialect/ast.ts';
import { expressionOf } from '../../dialect/build.ts';
import type { Interval } from '../dates/date_range.ts';

const starts: Readonly<Record<Interval, Expression>> = {
  minute: expressionOf('toStartOfMinute(timestamp)'),
  hour: expressionOf('toStartOfHour(timestamp)'),
  // Days are told by their dates, which costs less than the moment at which each begins.
  day: expressionOf('toDate(timestamp)'),
  week: expressionOf('toStartOfWeek(timestamp)'),
  month: expressionOf('toStartOfMonth(timestamp)'),
};

/** Where the interval of an event begins: a day, or a time for those that are shorter. */
export const bucketOf = (interval: Interval): Expression => starts[interval];

/** What tells intervals apart, of what a row says. */
export function bucketKey(shown: unknown): string {
  const text = String(shown);
  return text.includes('T') ? String(DateTime.fromISO(text).toMillis()) : text;
}

/** The same of an interval's beginning. */
export const keyOfBucket = (bucket: DateTime, interval: Interval): string =>
  interval === 'hour' || interval === 'minute' ? String(bucket.toMillis()) : bucket.toFormat('yyyy-MM-dd');
