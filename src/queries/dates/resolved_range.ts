import type { DateTime } from 'luxon';
import { QueryError } from '../query_errors.ts';
import type { QueryProject } from '../query_kind.ts';
import { bucketUpperBound, bucketsOf, maxBuckets, type Interval } from './intervals.ts';

/** A time range in the project's zone. */
export interface ResolvedRange {
  readonly interval: Interval;
  readonly from: DateTime;
  /** Inclusive. The last millisecond includes all of its microseconds. */
  readonly to: DateTime;
  /** The starts of all intervals of the range, in order. */
  readonly buckets: readonly DateTime[];
}

/** What relative dates are resolved against. */
export interface DateContext {
  readonly project: QueryProject;
  readonly now: Date;
  /** The time of the project's first event; null without events, or if `needsEarliest` is false. */
  readonly earliest: Date | null;
}

/** Creates a range from its bounds. @throws QueryError for too many intervals */
export function rangeBetween(
  from: DateTime,
  to: DateTime,
  interval: Interval,
  { week_start_day }: QueryProject,
  attr: string,
): ResolvedRange {
  if (bucketUpperBound(from, to, interval) > maxBuckets)
    throw new QueryError(
      'invalid_input',
      `This range has more than ${maxBuckets} ${interval} intervals. Choose a longer interval or a shorter range.`,
      { attr },
    );
  return { interval, from, to, buckets: bucketsOf(from, to, interval, week_start_day) };
}
