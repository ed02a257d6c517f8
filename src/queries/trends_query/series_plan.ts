import type { Expression } from '../../dialect/ast.ts';
import { buildExpression } from '../../dialect/ast_builders.ts';
import { breakdownExpression } from '../breakdowns/breakdown_expression.ts';
import { breakdownsOf, type Breakdown } from '../breakdowns/schema.ts';
import type { Interval } from '../dates/intervals.ts';
import type { ResolvedRange } from '../dates/resolved_range.ts';
import { firstOfDay } from '../dates/local_time.ts';
import { windowDays } from './active_windows.ts';
import { breakdownValue } from './breakdown_value.ts';
import { bucketOf } from './buckets.ts';
import { binsOf, type Bins } from './histogram.ts';
import { measureOf } from './measures.ts';
import type { MathKind } from './math.ts';
import { displayFormOf, type DisplayForm } from './schema.ts';
import {
  attrOf,
  firstEventTimes,
  seriesEvents,
  seriesEventsSince,
  type SeriesEvents,
  type SeriesPosition,
} from './series_events.ts';
import { buildNamedSelect } from './selects.ts';
import type { SeriesStatement } from './statement.ts';
import type { DialectReader } from '../dialect_reader.ts';

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
