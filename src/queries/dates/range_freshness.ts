import { QueryError } from '../query_errors.ts';
import type { QueryFreshness, QueryProject } from '../query_kind.ts';
import { closedEnd, needsEarliest, resolveRange } from './date_range.ts';
import type { Interval } from './intervals.ts';
import type { DateRange } from './schema.ts';

const minute = 60_000;
const day = 24 * 60 * minute;

/** The fields of an insight that decide how fast its result changes. */
export interface FreshnessRange {
  readonly interval: Interval;
  readonly dateRange?: DateRange | null | undefined;
}

/** The age limits of an insight over a date range. */
export function rangeFreshness(range: FreshnessRange, project: QueryProject, now: Date): QueryFreshness {
  const { interval, dateRange } = range;
  try {
    return {
      interval,
      date_to: closedEnd(dateRange, interval, project, now),
      next_refresh_ms: nextRefreshMs(range, project, now),
    };
  } catch (error) {
    // An invalid date is reported when the query runs.
    if (!(error instanceof QueryError)) throw error;
    return { interval, date_to: null };
  }
}

/** Longer for long ranges, whose results change slowly and are expensive. */
function nextRefreshMs({ interval, dateRange }: FreshnessRange, project: QueryProject, now: Date): number {
  if (interval === 'minute') return minute;
  if (interval === 'hour') return 3 * minute;
  if (needsEarliest(dateRange)) return 15 * minute;
  const { from, to } = resolveRange(dateRange, interval, { project, now, earliest: null });
  const wholeDays = Math.floor((to.toMillis() - from.toMillis()) / day);
  return wholeDays <= 7 ? 3 * minute : 15 * minute;
}
