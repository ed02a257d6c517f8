import type { QueryFreshness, QueryInterval } from './query_kind.ts';

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;

/** How old an answer may be, in milliseconds, by the interval of its query. */
export interface AgeLimits {
  /** For who asks for very fresh results: blocking, async. */
  readonly very_fresh: number;
  /** For who is content with somewhat fresh ones: lazy_async. */
  readonly somewhat_fresh: number;
}

/** The limits that analysts know, `none` for queries without an interval. */
const ageLimits: Readonly<Record<NonNullable<QueryInterval> | 'none', AgeLimits>> = {
  minute: { very_fresh: 5 * minute, somewhat_fresh: 15 * minute },
  hour: { very_fresh: hour, somewhat_fresh: 2 * hour },
  day: { very_fresh: 6 * hour, somewhat_fresh: 12 * hour },
  week: { very_fresh: day, somewhat_fresh: day },
  month: { very_fresh: day, somewhat_fresh: day },
  none: { very_fresh: 6 * hour, somewhat_fresh: 12 * hour },
};

/** A range counts as over for good when it ended this long before its answer was computed. */
const closedForMs = 10_000;

/** Whether an answer that was computed then is still fresh enough now. */
export function isFresh(
  computedAt: Date,
  { interval, date_to }: Pick<QueryFreshness, 'interval' | 'date_to'>,
  now: Date,
  wanted: keyof AgeLimits,
): boolean {
  if (date_to !== null && date_to.getTime() < computedAt.getTime() - closedForMs) return true;
  return now.getTime() - computedAt.getTime() < ageLimits[interval ?? 'none'][wanted];
}

/** How long a client should wait before it asks for a refresh, where the kind says nothing else. */
export const defaultNextRefreshMs = minute;
