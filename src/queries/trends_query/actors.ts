import type { Expression, Select } from '@exportd/dialect/ast';
import { buildExpression, buildField, combineConditions } from '@exportd/dialect/ast_builders';
import { parseAbsoluteDate } from '../../filters/condition.ts';
import { lastOfDay } from '../../filters/moments.ts';
import { type ResolvedRange, momentOfDate, rangeCondition } from '../dates.ts';
import { cohortOfPoint } from '../cohorts.ts';
import { QueryError } from '../query_errors.ts';
import { cohortBreakdownOf } from '../breakdowns.ts';
import { eventsOfWindow } from './active_users.ts';
import { nullValue, otherValue } from './breakdown.ts';
import { checkExpressions } from './check_expressions.ts';
import { measureOf } from './measure.ts';
import { buildNamedSelect } from './named_select.ts';
import { type PeriodContext, periodsOf } from './periods.ts';
import { type TrendsQuery, displayFormOf, windowDaysWithin } from './schema.ts';
import { type SeriesEvents, type SeriesPosition, attrOf } from './series.ts';
import { type SeriesPlan, planSeries } from './series_plan.ts';
import { topValuesOfSeries } from './statement.ts';
import { isOneOfValues } from './top_values.ts';

/** One point of a trend. */
export interface TrendsPoint {
  /** One of `days` of the result; null for a display with one value for the whole range. */
  readonly day: string | null;
  /** Counted from 0. */
  readonly series: number;
  /** `breakdown_value` of the line, `''` for events without a value; null for all events of the series. */
  readonly breakdown: string | number | readonly (string | number)[] | null;
  readonly compare: 'current' | 'previous' | null;
}

interface TrendsActorsContext extends PeriodContext {
  /** Path of the field that selects the point, such as `query__source`. */
  readonly attr: string;
}

/**
 * The actors behind a point of a trend: `actor_id` (a person's id; a group's key for the math unique_group),
 * `event_count` and `event_distinct_ids`. Events without a person are ignored.
 * @throws QueryError with the path of the invalid field of the point
 */
export async function trendsActors(
  query: TrendsQuery,
  point: TrendsPoint,
  context: TrendsActorsContext,
): Promise<Select> {
  const { position, from, condition } = await trendsPointEvents(query, point, context);
  const { series } = position;
  const measure = measureOf(series, attrOf(position));
  const isGroup = series.math === 'unique_group' && measure.form === 'partial' && measure.actor !== null;
  const actor = isGroup ? measure.actor : buildField('person_id');
  return buildNamedSelect(
    {
      actor_id: actor,
      event_count: buildExpression('count()'),
      event_distinct_ids: buildExpression('groupUniqArray(distinct_id)'),
    },
    {
      from,
      where: combineConditions('and', [condition, buildExpression('isNotNull({actor})', { actor })]),
      groupBy: ['actor_id'],
    },
  );
}

/**
 * The events behind a point of a trend, of all actors. A point of a cumulative display includes the whole
 * range up to it; one of weekly or monthly active users includes the days of its window.
 * @throws QueryError with the path of the invalid field of the point
 */
export async function trendsPointEvents(
  query: TrendsQuery,
  point: TrendsPoint,
  context: TrendsActorsContext,
): Promise<SeriesEvents & { readonly position: SeriesPosition }> {
  const series = query.series[point.series];
  if (series === undefined)
    throw invalid(context, 'series', `The query has ${query.series.length} series. The index starts at 0.`);
  const { project, reader } = context;
  const breakdown = cohortBreakdownOf(query.breakdownFilter);
  const cohort = breakdown && cohortOfPoint(point.breakdown, `${context.attr}__breakdown`);
  const position: SeriesPosition = { query, series, index: point.series, project, cohort };
  checkExpressions(query, project, reader);
  const [current, previous = current] = await periodsOf(query, context);
  const { range } = point.compare === 'previous' ? previous : current;
  const plan = await planSeries(position, range, reader);
  const { from, condition } = eventsOfPoint(plan, point, context);
  return {
    position,
    from,
    condition: combineConditions('and', [
      condition,
      breakdown === null ? valuesCondition(plan, point, context) : null,
    ]),
  };
}

const invalid = ({ attr }: TrendsActorsContext, field: string, message: string): QueryError =>
  new QueryError('invalid_input', message, { attr: `${attr}__${field}` });

function eventsOfPoint(
  { position, range, question: { events } }: SeriesPlan,
  { day }: TrendsPoint,
  context: TrendsActorsContext,
): SeriesEvents {
  const display = displayFormOf(position.query.trendsFilter?.display);
  if (display === 'totalValue') {
    if (day === null) return events;
    throw invalid(context, 'day', 'A display with one value for the whole range has no days.');
  }
  if (day === null) throw invalid(context, 'day', 'Set day to one of the days of the result.');
  const at = bucketAt(day, range, context);
  const start = range.buckets[at] ?? range.from;
  const next = range.buckets[at + 1]?.minus(1) ?? range.to;
  const days = windowDaysWithin(position.series.math, range.interval);
  if (days !== null) {
    const until = lastOfDay(start) < range.to ? lastOfDay(start) : range.to;
    return eventsOfWindow(position, start, days, { ...range, to: until });
  }
  const first = display === 'cumulative' || start < range.from ? range.from : start;
  const within = rangeCondition({ ...range, from: first, to: next });
  return { ...events, condition: combineConditions('and', [events.condition, within]) };
}

/** The index of the interval that contains a day or time. */
function bucketAt(day: string, { from, to, buckets }: ResolvedRange, context: TrendsActorsContext): number {
  const date = parseAbsoluteDate(day);
  const moment = date && momentOfDate(date, from.zone, 'first');
  const at = moment ? buckets.findLastIndex((bucket) => bucket <= moment) : -1;
  if (moment && at !== -1 && (moment <= to || at < buckets.length - 1)) return at;
  const range = `${from.toISODate() ?? ''} to ${to.toISODate() ?? ''}`;
  throw invalid(context, 'day', `This is not a day of the result, which covers ${range}.`);
}

/** The condition that an event belongs to the line of a point. */
function valuesCondition(
  plan: SeriesPlan,
  { breakdown }: TrendsPoint,
  context: TrendsActorsContext,
): Expression | null {
  const { values } = plan.keys;
  if (breakdown === null) return null;
  const requested = (typeof breakdown === 'object' ? breakdown : [breakdown]).map(String);
  if (requested.length !== values.length)
    throw invalid(
      context,
      'breakdown',
      `The query has ${values.length} breakdowns. Expected as many values.`,
    );
  if (requested[0] === otherValue)
    return buildExpression('not {kept}', { kept: isOneOfValues(values, topValuesOfSeries(plan)) });
  return combineConditions(
    'and',
    values.map((value, index) => {
      const text = requested[index] ?? '';
      return buildExpression('{value} = {text}', { value, text: { value: text === '' ? nullValue : text } });
    }),
  );
}
