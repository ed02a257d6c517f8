import type { ResolvedRange } from '../dates.ts';
import type { DialectReader } from '../dialect_reader.ts';
import { activeUsersOfEachInterval } from './active_users.ts';
import { breakdownLimit, breakdownValues } from './breakdown.ts';
import type { LineKeys } from './line_keys.ts';
import { type Measure, measureOf } from './measure.ts';
import { type Question, newActorsOfEachInterval, numberOfEachInterval, numberOfRange } from './question.ts';
import { displayFormOf, windowDays, windowDaysWithin } from './schema.ts';
import { type SeriesEvents, type SeriesPosition, attrOf, firstEventTimes } from './series.ts';

/** How a series is computed. */
export interface SeriesPlan {
  readonly position: SeriesPosition;
  readonly range: ResolvedRange;
  readonly question: Question;
  readonly measure: Measure;
  readonly keys: LineKeys;
  /** How many values have a separate line. */
  readonly limit: number;
  readonly events: SeriesEvents;
}

/** Plans the statement of a series. @throws QueryError */
export async function planSeries(
  position: SeriesPosition,
  range: ResolvedRange,
  reader: DialectReader,
): Promise<SeriesPlan> {
  const question = questionOf(position, range);
  const values = await breakdownValues(position.query, question.events, reader);
  return {
    position,
    range,
    question,
    measure: measureOf(position.series, attrOf(position)),
    keys: { bucket: question.bucket, values },
    limit: breakdownLimit(position.query),
    events: values.length === 0 ? (firstEventTimes(position, range) ?? question.events) : question.events,
  };
}

/** What a query asks of a series. @throws QueryError */
function questionOf(position: SeriesPosition, range: ResolvedRange): Question {
  const { math } = position.series;
  const display = displayFormOf(position.query.trendsFilter?.display);
  const days = windowDays(math);
  const daysWithin = windowDaysWithin(math, range.interval);
  if (display === 'totalValue') return numberOfRange(position, range, days);
  if (daysWithin !== null) return activeUsersOfEachInterval(position, range, daysWithin);
  const countsActors = math === 'unique_group' || math === 'dau' || days !== null;
  return display === 'cumulative' && countsActors
    ? newActorsOfEachInterval(position, range)
    : numberOfEachInterval(position, range);
}
