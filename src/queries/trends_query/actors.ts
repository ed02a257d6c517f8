import { DateTime } from 'luxon';
import type { Expression, Select } from '../../dialect/ast.ts';
import { expressionOf, fieldOf, joined } from '../../dialect/build.ts';
import { rangeCondition, type ResolvedRange } from '../dates/date_range.ts';
import { QueryInvalid } from '../query_errors.ts';
import { windowDays } from './active_windows.ts';
import { nullValue, otherValue } from './breakdown_marks.ts';
import { checkExpressions } from './checked_expressions.ts';
import { isAmong } from './folding.ts';
import { measureOf } from './measures.ts';
import { periodsOf, type PeriodContext } from './periods.ts';
import { displayFormOf, type TrendsQuery } from './schema.ts';
import { attrOf, seriesEventsSince, type SeriesEvents, type SeriesPlace } from './series_events.ts';
import { eventsOf, mathIn, planSeries } from './series_plan.ts';
import { selecting } from './selects.ts';
import { keptOfSeries, type SeriesStatement } from './statement.ts';

/** One point of an answer of trends. */
export interface TrendsPoint {
  /** One of `days`; null for a display that has one value for the whole range. */
  readonly day: string | null;
  /** From zero. */
  readonly series: number;
  /** `breakdown_value` of the line, `''` for none; null for all events of the series. */
  readonly breakdown: string | number | readonly (string | number)[] | null;
  readonly compare: 'current' | 'previous' | null;
}

export interface TrendsActorsContext extends PeriodContext {
  /** Path of the member of the request that says which point it is, such as `query__source`. */
  readonly attr: string;
}

/**
 * Who is behind a point of an answer: `actor_id` (a person's id; of the math unique_group the group's key),
 * `event_count` and `event_distinct_ids`. Events without a person are nobody's.
 * @throws QueryInvalid that names the member of the point
 */
export async function trendsActors(
  query: TrendsQuery,
  point: TrendsPoint,
  about: TrendsActorsContext,
): Promise<Select> {
  const { place, from, condition } = await trendsPointEvents(query, point, about);
  const { series } = place;
  const measure = measureOf(series, attrOf(place));
  const isGroup = series.math === 'unique_group' && measure.form === 'partial' && measure.actor !== null;
  const actor = isGroup ? measure.actor : fieldOf('person_id');
  return selecting(
    {
      actor_id: actor,
      event_count: expressionOf('count()'),
      event_distinct_ids: expressionOf('groupUniqArray(distinct_id)'),
    },
    {
      from,
      where: joined('and', [condition, expressionOf('isNotNull({actor})', { actor })]),
      groupBy: ['actor_id'],
    },
  );
}

/**
 * The events of a point of an answer, whoever they are of. A point of a cumulative display is all of the range up to
 * it, one of weekly or monthly active users the days that it looks back on.
 * @throws QueryInvalid that names the member of the point
 */
export async function trendsPointEvents(
  query: TrendsQuery,
  point: TrendsPoint,
  about: TrendsActorsContext,
): Promise<SeriesEvents & { readonly place: SeriesPlace }> {
  const series = query.series[point.series];
  if (series === undefined)
    throw invalid(about, 'series', `The query has ${query.series.length} series, counted from 0.`);
  const place: SeriesPlace = { query, series, index: point.series, project: about.project };
  checkExpressions(query, about.project, about.reader);
  const [current, previous = current] = await periodsOf(query, about);
  const { range } = point.compare === 'previous' ? previous : current;
  const plan = await planSeries(place, range, about.reader);
  const { from, condition } = eventsOfPoint(place, range, point, about);
  return { place, from, condition: joined('and', [condition, valuesCondition(plan, point, about)]) };
}

const invalid = ({ attr }: TrendsActorsContext, member: string, message: string): QueryInvalid =>
  new QueryInvalid('invalid_input', message, { attr: `${attr}__${member}` });

function eventsOfPoint(
  place: SeriesPlace,
  range: ResolvedRange,
  { day }: TrendsPoint,
  about: TrendsActorsContext,
): SeriesEvents {
  const display = displayFormOf(place.query.trendsFilter?.display);
  const events = eventsOf(place, range, display);
  if (display === 'totalValue') {
    if (day === null) return events;
    throw invalid(about, 'day', 'A display of one value for the whole range has no days.');
  }
  if (day === null) throw invalid(about, 'day', 'Say of which day of the answer the actors are wanted.');
  const at = bucketAt(day, range, about);
  const start = range.buckets[at] ?? range.from;
  const next = range.buckets[at + 1]?.minus(1) ?? range.to;
  const days = windowDays(mathIn(place.series.math, range.interval, false));
  if (days !== null) {
    const until = start.endOf('day') < range.to ? start.endOf('day') : range.to;
    return seriesEventsSince(place, start.startOf('day').minus({ days: days - 1 }), { ...range, to: until });
  }
  const first = display === 'cumulative' || start < range.from ? range.from : start;
  const within = rangeCondition({ ...range, from: first, to: next });
  return { ...events, condition: joined('and', [events.condition, within]) };
}

/** Which interval a day or a time lies in. */
function bucketAt(day: string, { from, to, buckets }: ResolvedRange, about: TrendsActorsContext): number {
  const moment = DateTime.fromISO(day.trim().replace(' ', 'T'), { zone: about.project.timezone });
  const at = buckets.findLastIndex((bucket) => bucket <= moment);
  const isInside = moment.isValid && at !== -1 && (moment <= to || at < buckets.length - 1);
  if (isInside) return at;
  const range = `${from.toISODate() ?? ''} to ${to.toISODate() ?? ''}`;
  throw invalid(about, 'day', `This is no day of the answer, which goes from ${range}.`);
}

/** That an event belongs to the line of a point. */
function valuesCondition(
  plan: SeriesStatement,
  { breakdown }: TrendsPoint,
  about: TrendsActorsContext,
): Expression | null {
  const { values } = plan.keys;
  if (breakdown === null) return null;
  const wanted = (typeof breakdown === 'object' ? breakdown : [breakdown]).map(String);
  if (wanted.length !== values.length)
    throw invalid(
      about,
      'breakdown',
      `The query has ${values.length} breakdowns, so this has to be as many values.`,
    );
  if (wanted[0] === otherValue)
    return expressionOf('not {kept}', { kept: isAmong(values, keptOfSeries(plan)) });
  return joined(
    'and',
    values.map((value, index) => {
      const text = wanted[index] ?? '';
      return expressionOf('{value} = {text}', { value, text: { value: text === '' ? nullValue : text } });
    }),
  );
}
