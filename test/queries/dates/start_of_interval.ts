import type { DateTime } from 'luxon';
import { bucketsOf, type Interval } from '../../../src/queries/dates/intervals.ts';

/** Where the interval begins in which a moment lies: the one bucket of a range that is this moment alone. */
export function startOfInterval(
  moment: DateTime,
  interval: Interval,
  weekStart: Parameters<typeof bucketsOf>[3],
): DateTime {
  const [start] = bucketsOf(moment, moment, interval, weekStart);
  if (!start) throw new Error(`No interval has ${moment.toISO()}.`);
  return start;
}
