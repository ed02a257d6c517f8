import type { Relations } from '../../source/relations.ts';
import { closedEnd, needsEarliest, resolveRange } from '../dates/date_range.ts';
import { withOverriddenDates } from '../dates/override.ts';
import { withOverride } from '../filters/override.ts';
import type { QueryFreshness, QueryKind, QueryProject } from '../query_kind.ts';
import { cacheFormOf } from './cache_form.ts';
import { runTrends } from './run.ts';
import { trendsQuerySchema, type TrendsQuery } from './schema.ts';

const minute = 60_000;
const day = 24 * 60 * minute;

/** Numbers of events over time. */
export const trendsQueryKind = (relations: Relations): QueryKind<TrendsQuery> => ({
  kind: 'TrendsQuery',
  schema: trendsQuerySchema,
  freshness: freshnessOf,
  variables: () => [],
  override: (query, filters) => ({
    ...query,
    dateRange: withOverriddenDates(query.dateRange, filters),
    properties: withOverride(query.properties, filters.properties),
  }),
  cacheForm: cacheFormOf,
  run: (query, context) => runTrends(query, context, relations),
});

function freshnessOf(query: TrendsQuery, project: QueryProject, now: Date): QueryFreshness {
  const { interval, dateRange } = query;
  try {
    return {
      interval,
      date_to: closedEnd(dateRange, interval, project, now),
      next_refresh_ms: nextRefreshMs(query, project, now),
    };
  } catch (error) {
    // A date that cannot be read is refused when the query runs.
    if (!Error.isError(error) || error.name !== 'QueryInvalid') throw error;
    return { interval, date_to: null };
  }
}

/** Longer for long ranges, whose answers change slowly and cost much. */
function nextRefreshMs({ interval, dateRange }: TrendsQuery, project: QueryProject, now: Date): number {
  if (interval === 'minute') return minute;
  if (interval === 'hour') return 3 * minute;
  if (needsEarliest(dateRange)) return 15 * minute;
  const { from, to } = resolveRange(dateRange, interval, { project, now, earliest: null });
  const wholeDays = Math.floor((to.toMillis() - from.toMillis()) / day);
  return wholeDays <= 7 ? 3 * minute : 15 * minute;
}
