import type { TrendsPoint } from '../../trends_query/actors.ts';
import type { InsightActorsQuery } from './schema.ts';

/** The point of an answer of trends that a request means; the first series where it says none. */
export const trendsPoint = ({ day, series, breakdown, compare }: InsightActorsQuery): TrendsPoint => ({
  day: day === null || day === undefined ? null : String(day),
  series: series ?? 0,
  breakdown: breakdown ?? null,
  compare: compare ?? null,
});
