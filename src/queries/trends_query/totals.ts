import type { ResolvedRange } from '../dates.ts';
import { windowDays } from './active_users.ts';
import { type Question, measureResults, sumOfResults } from './question.ts';
import { type SeriesPosition, seriesEvents, seriesEventsSince } from './series.ts';

/** One number for the whole range; of weekly and monthly active users, that of the window at its end. */
export function numberOfRange(position: SeriesPosition, range: ResolvedRange): Question {
  const days = windowDays(position.series.math);
  return {
    events:
      days === null
        ? seriesEvents(position, range)
        : seriesEventsSince(position, range.to.plus(1).minus({ days }), range),
    bucket: null,
    resultsOf: measureResults,
    total: sumOfResults,
    rowsPerLine: range.buckets.length + 1,
    length: 1,
    dataOf: (results) => [results.get('') ?? 0],
  };
}
