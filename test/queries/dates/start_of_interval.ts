import type { DateTime } from 'luxon';
import { bucketsOf, type Interval } from '../../../src/queries/buckets.ts';

/** The start of the interval of a point in time: the only bucket of the range with just this time. */
export function startOfInterval(
  moment: DateTime,
  interval: Interval,
  weekStart: Parameters<typeof bucketsOf>[3],
): DateTime {
  const [start] = bucketsOf(moment, moment, interval, weekStart);
  if (!start) throw new Error(`No interval has ${moment.toISO()}.`);
  return start;
}
