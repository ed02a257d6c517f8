import type { DateTime } from 'luxon';
import { QueryError } from '../query_errors.ts';
import type { QueryProject } from '../query_kind.ts';
import { bucketUpperBound, bucketsOf, maxBuckets, type Interval } from './intervals.ts';

/** A range of time in the project's zone. */
export interface ResolvedRange {
  readonly interval: Interval;
  readonly from: DateTime;
  /** Inclusive. A last millisecond stands for all of its microseconds. */
  readonly to: DateTime;
  /** Where the intervals of the range start, all of them in order. */
  readonly buckets: readonly DateTime[];
}

/** What dates are relative to. */
export interface DateContext {
  readonly project: QueryProject;
  readonly now: Date;
  /** When the project's first event was; null where there is none, or where `needsEarliest` says that nobody asks. */
  readonly earliest: Date | null;
}

/** A range by its bounds. @throws QueryError for one of too many intervals */
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
      `This range has more than ${maxBuckets} intervals of a ${interval}; choose a longer interval or a shorter range.`,
      { attr },
    );
  return { interval, from, to, buckets: bucketsOf(from, to, interval, week_start_day) };
}
