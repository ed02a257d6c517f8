/** How old a result may be, and what a request does without one. */
import type { QueryFreshness, QueryInterval } from './query_kind.ts';

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;

/** Maximum ages of a cached result in milliseconds, by the query's interval. */
interface AgeLimits {
  /** For `blocking` and `async`. */
  readonly very_fresh: number;
  /** For `lazy_async`. */
  readonly somewhat_fresh: number;
}

/** The limits of PostHog-compatible clients; `none` is for queries without an interval. */
const ageLimits: Readonly<Record<NonNullable<QueryInterval> | 'none', AgeLimits>> = {
  minute: { very_fresh: 5 * minute, somewhat_fresh: 15 * minute },
  hour: { very_fresh: hour, somewhat_fresh: 2 * hour },
  day: { very_fresh: 6 * hour, somewhat_fresh: 12 * hour },
  week: { very_fresh: day, somewhat_fresh: day },
  month: { very_fresh: day, somewhat_fresh: day },
  none: { very_fresh: 6 * hour, somewhat_fresh: 12 * hour },
};

/** A date range is closed if it ended this long before its result was computed. */
const closedForMs = 10_000;

/** Which results a request accepts, by their age. */
type Accepted = keyof AgeLimits | 'anything' | 'nothing';

/** Whether a request accepts a result computed at `computedAt`. Results of closed ranges stay fresh. */
export function isAccepted(
  computedAt: Date,
  { interval, date_to }: Pick<QueryFreshness, 'interval' | 'date_to'>,
  now: Date,
  accepts: Accepted,
): boolean {
  if (accepts === 'anything' || accepts === 'nothing') return accepts === 'anything';
  if (date_to !== null && date_to.getTime() < computedAt.getTime() - closedForMs) return true;
  return now.getTime() - computedAt.getTime() < ageLimits[interval ?? 'none'][accepts];
}

/** The values of the field `refresh`. */
export const refreshNames = [
  'blocking',
  'async',
  'lazy_async',
  'force_blocking',
  'force_async',
  'force_cache',
] as const;
export type RefreshMode = (typeof refreshNames)[number];

/** Which cached results each mode accepts, and what it does without one. */
export const refreshModes: Readonly<
  Record<RefreshMode, { readonly accepts: Accepted; readonly otherwise: 'run' | 'start' | 'miss' }>
> = {
  blocking: { accepts: 'very_fresh', otherwise: 'run' },
  async: { accepts: 'very_fresh', otherwise: 'start' },
  lazy_async: { accepts: 'somewhat_fresh', otherwise: 'start' },
  force_blocking: { accepts: 'nothing', otherwise: 'run' },
  force_async: { accepts: 'nothing', otherwise: 'start' },
  force_cache: { accepts: 'anything', otherwise: 'miss' },
};
