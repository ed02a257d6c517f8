import type { DateTime } from 'luxon';
import type { Expression } from '../../dialect/ast.ts';
import { buildExpression } from '../../dialect/ast_builders.ts';
import type { Interval } from '../dates/intervals.ts';

const starts: Readonly<Record<Interval, Expression>> = {
  minute: buildExpression('toStartOfMinute(timestamp)'),
  hour: buildExpression('toStartOfHour(timestamp)'),
  // Days are identified by their dates, which is cheaper than by their start times.
  day: buildExpression('toDate(timestamp)'),
  week: buildExpression('toStartOfWeek(timestamp)'),
  month: buildExpression('toStartOfMonth(timestamp)'),
};

/** The start of an event's interval: a date, or a time for hours and minutes. */
export const bucketOf = (interval: Interval): Expression => starts[interval];

/** The key of the interval in a row. */
export function keyOfRow(value: unknown): string {
  const text = String(value);
  return text.includes('T') ? String(new Date(text).getTime()) : text;
}

/** The key of an interval, by its start. */
export const keyOfBucket = (bucket: DateTime, interval: Interval): string =>
  interval === 'hour' || interval === 'minute' ? String(bucket.toMillis()) : bucket.toFormat('yyyy-MM-dd');
