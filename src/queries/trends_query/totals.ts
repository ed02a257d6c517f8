import type { ResolvedRange } from '../dates.ts';
import { type Question, measureResults, sumOfResults } from './question.ts';
import { type SeriesPosition, seriesEvents, seriesEventsSince } from './series.ts';

/**
 * One number for the whole range.
 * @param windowDays of active users, who are those of the window at the end of the range; else null
 */
export const numberOfRange = (
  position: SeriesPosition,
  range: ResolvedRange,
  windowDays: number | null,
): Question => ({
  events:
    windowDays === null
      ? seriesEvents(position, range)
      : seriesEventsSince(position, range.to.plus(1).minus({ days: windowDays }), range),
  bucket: null,
  resultsOf: measureResults,
  total: sumOfResults,
  rowsPerLine: range.buckets.length + 1,
  length: 1,
  dataOf: (results) => [results.get('') ?? 0],
});
