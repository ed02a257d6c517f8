import type { TrendsPoint } from '../../trends_query/actors.ts';
import type { InsightActorsQuery } from './schema.ts';

/** The point of a trend that a request selects; of the first series by default. */
export const trendsPoint = ({ day, series, breakdown, compare }: InsightActorsQuery): TrendsPoint => ({
  day: day === null || day === undefined ? null : String(day),
  series: series ?? 0,
  breakdown: breakdown ?? null,
  compare: compare ?? null,
});
