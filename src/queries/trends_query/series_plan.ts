import type { DateTime } from 'luxon';
import type { Expression } from '../../dialect/ast.ts';
import { buildExpression } from '../../dialect/ast_builders.ts';
import { type Breakdown, breakdownExpression, breakdownsOf, normalizedUrl } from '../insight_fields.ts';
import { type Interval, type ResolvedRange, firstOfDay } from '../dates.ts';
import type { DialectReader } from '../dialect_reader.ts';
import { measureOf } from './measures.ts';
import { type DisplayForm, displayFormOf, type MathKind } from './schema.ts';
import {
  buildNamedSelect,
  nullValue,
  attrOf,
  firstEventTimes,
  seriesEvents,
  type SeriesEvents,
  seriesEventsSince,
  type SeriesPosition,
} from './selects.ts';
import { type SeriesStatement, windowDays } from './statement.ts';

const starts: Readonly<Record<Interval, Expression>> = {
  minute: buildExpression('toStartOfMinute(timestamp)'),
  hour: buildExpression('toStartOfHour(timestamp)'),
  // Days are identified by their dates, which is cheaper than by their start times.
  day: buildExpression('toDate(timestamp)'),
  week: buildExpression('toStartOfWeek(timestamp)'),
  month: buildExpression('toStartOfMonth(timestamp)'),
};

/** The start of an event's interval: a date, or a time for hours and minutes. */
const bucketOf = (interval: Interval): Expression => starts[interval];

/** The key of the interval in a row. */
export function keyOfRow(value: unknown): string {
  const text = String(value);
  return text.includes('T') ? String(new Date(text).getTime()) : text;
}

/** The key of an interval, by its start. */
export const keyOfBucket = (bucket: DateTime, interval: Interval): string =>
  interval === 'hour' || interval === 'minute' ? String(bucket.toMillis()) : bucket.toFormat('yyyy-MM-dd');

/** The edges of a histogram's bins in ascending order, one more than bins; empty if no event has a number. */
type Bins = readonly number[];

const rounded = (value: number): number => Math.round(value * 100) / 100;

/**
 * Bins of equal width from the smallest to the largest number. The last one is slightly wider, to include the largest.
 */
function binsOf(least: number, largest: number, count: number): Bins {
  const width = (largest - least) / count;
  const inner = Array.from({ length: count - 1 }, (_, index) => rounded(least + (index + 1) * width));
  const edges = [Math.floor(least * 100) / 100, ...inner, rounded(largest + 0.01)];
  return [...new Set(edges)].sort((one, other) => one - other);
}

const binLabel = (low: number, high: number): string => `[${low},${high}]`;

/** The labels of the bins, such as `[0,12.5]`. */
const binLabels = (bins: Bins): readonly string[] =>
  bins.slice(1).map((high, index) => binLabel(bins[index] ?? high, high));

/** The label of the bin of a number, found by binary search. */
function binnedValue(value: Expression, bins: Bins): Expression {
  const number = buildExpression('toFloat({value})', { value });
  const strings = binLabels(bins);
  const missing = buildExpression('{missing}', { missing: { value: nullValue } });
  if (strings.length === 0) return missing;
  const findBin = (first: number, last: number): Expression => {
    if (first === last) return buildExpression('{text}', { text: { value: strings[first] ?? '' } });
    const middle = Math.floor((first + last) / 2);
    return buildExpression('{number} < {edge} ? {below} : {above}', {
      number,
      edge: { value: bins[middle + 1] ?? 0 },
      below: findBin(first, middle),
      above: findBin(middle + 1, last),
    });
  };
  return buildExpression('isNull({number}) ? {missing} : {bin}', {
    number,
    missing,
    bin: findBin(0, strings.length - 1),
  });
}

/**
 * The breakdown value of an event as a string, never null or empty.
 * @param bins of a histogram: the value is then the label of the number's bin
 * @throws QueryError
 */
function breakdownValue(breakdown: Breakdown, bins: Bins | null): Expression {
  const value = breakdownExpression(breakdown);
  if (bins !== null) return binnedValue(value, bins);
  const text = buildExpression('toString({value})', { value });
  const read = breakdown.normalize_url
    ? buildExpression("isNull({text}) or {text} = '' ? null : {url}", { text, url: normalizedUrl(text) })
    : text;
  return buildExpression("ifNull(nullIf({read}, ''), {missing})", { read, missing: { value: nullValue } });
}

const defaultLimit = 25;
const worldMapLimit = 250;

/** The effective math: a window that is no longer than the interval equals the interval itself. */
export function mathIn(math: MathKind, interval: Interval, isTotal: boolean): MathKind {
  if (isTotal) return math;
  if (math === 'weekly_active' && (interval === 'week' || interval === 'month')) return 'dau';
  return math === 'monthly_active' && interval === 'month' ? 'dau' : math;
}

/** The events of a series, including those in windows before the range. @throws QueryError */
export function eventsOf(position: SeriesPosition, range: ResolvedRange, display: DisplayForm): SeriesEvents {
  const days = windowDays(mathIn(position.series.math, range.interval, display === 'totalValue'));
  if (days === null) return seriesEvents(position, range);
  if (display === 'totalValue') return seriesEventsSince(position, range.to.plus(1).minus({ days }), range);
  const [first = range.from] = range.buckets;
  return seriesEventsSince(position, firstOfDay(first).minus({ days: days - 1 }), range);
}

/** Plans the statement of a series. @throws QueryError */
export async function planSeries(
  position: SeriesPosition,
  range: ResolvedRange,
  reader: DialectReader,
): Promise<SeriesStatement> {
  const { query, series } = position;
  const display = displayFormOf(query.trendsFilter?.display);
  const isTotal = display === 'totalValue';
  const math = mathIn(series.math, range.interval, isTotal);
  const days = isTotal ? null : windowDays(math);
  const events = eventsOf(position, range, display);
  const values: Expression[] = [];
  for (const breakdown of breakdownsOf(query.breakdownFilter)) {
    const bins = breakdown.bins === null ? null : await binsFor(breakdown, breakdown.bins, events, reader);
    values.push(breakdownValue(breakdown, bins));
  }
  const isOnce = display === 'cumulative' && (math === 'dau' || math === 'unique_group');
  return {
    measure: measureOf(series, attrOf(position)),
    keys: { bucket: isTotal ? null : bucketOf(days === null ? range.interval : 'day'), values },
    events: values.length === 0 ? (firstEventTimes(position, range) ?? events) : events,
    limit:
      query.breakdownFilter?.breakdown_limit ??
      (query.trendsFilter?.display === 'WorldMap' ? worldMapLimit : defaultLimit),
    topValuesQuery: null,
    aggregation: days !== null ? { days, range } : isOnce ? 'first interval' : 'each interval',
  };
}

/** The bins of a histogram over the events of a series. */
async function binsFor(
  breakdown: Breakdown,
  count: number,
  { from, condition }: SeriesEvents,
  reader: DialectReader,
): Promise<Bins> {
  const number = buildExpression('toFloat({value})', { value: breakdownExpression(breakdown) });
  const edges = buildNamedSelect(
    {
      least: buildExpression('min({number})', { number }),
      largest: buildExpression('max({number})', { number }),
    },
    { from, where: condition },
  );
  const { rows } = await reader.read(edges, { attr: breakdown.attr });
  const [least, largest] = rows[0] ?? [];
  return typeof least === 'number' && typeof largest === 'number' ? binsOf(least, largest, count) : [];
}
