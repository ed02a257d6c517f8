import type { DateTime } from 'luxon';
import type { Expression, From, Query, Select } from '@exportd/dialect/ast';
import {
  buildDerivedTable,
  buildExpression,
  buildField,
  buildTable,
  combineConditions,
} from '@exportd/dialect/ast_builders';
import { firstOfDay, type Interval, type ResolvedRange } from '../dates.ts';
import type { DialectReader } from '../dialect_reader.ts';
import { type Breakdown, breakdownExpression, breakdownsOf, normalizedUrl } from '../query_fields.ts';
import { type DisplayForm, displayFormOf, type MathKind } from './schema.ts';
import {
  actorColumn,
  attrOf,
  bucketColumn,
  buildNamedSelect,
  fieldsNamed,
  firstEventTimes,
  isOutsideTopValues,
  joinTopValues,
  keyColumns,
  keyNames,
  type LineKeys,
  type Measure,
  measureOf,
  nullValue,
  otherValue,
  type PartialMeasure,
  resultColumn,
  selectFromEvents,
  type SeriesEvents,
  seriesEvents,
  seriesEventsSince,
  type SeriesPosition,
  sumOfResults,
  topValueColumns,
  topValues,
  unionOf,
  valueColumns,
  type WholeMeasure,
  withOtherValue,
} from './selects.ts';

/** Length of the window of a math in days, including the day itself; null for a math without a window. */
export function windowDays(math: MathKind): number | null {
  if (math === 'weekly_active') return 7;
  return math === 'monthly_active' ? 30 : null;
}

/**
 * How the number of active actors changes from day to day. An actor with an event on a day is active on that day and on
 * the following days of the window. Days that two events of one actor share are counted once, because the days of an
 * event end at the next event. The cost is therefore that of the actors' days, however long the window.
 * @param rows distinct rows with the columns of values, `bucket_start` as a day, and `actor`
 * @returns columns of values, `bucket_start` and `result`: how many more actors are active than on the day before
 */
function activeChanges(rows: From, days: number, count: number): Select {
  const values = valueColumns(count);
  const columns = fieldsNamed(values);
  const following = buildNamedSelect(
    { ...columns, first_day: buildField(bucketColumn), next_day: nextDay(values) },
    { from: rows },
  );
  const endDay = 'next_day is null or next_day > first_day + {days} ? first_day + {days} : next_day';
  const spans = buildNamedSelect(
    {
      ...columns,
      first_day: buildField('first_day'),
      end_day: buildExpression(endDay, { days: { value: days } }),
    },
    { from: buildDerivedTable(following, 'following') },
  );
  const names = [...values, 'first_day', 'end_day'];
  const aggregation = buildNamedSelect(
    { ...fieldsNamed(names), actors: buildExpression('count()') },
    { from: buildDerivedTable(spans, 'spans'), groupBy: names },
  );
  const change = (day: string, amount: string): Select =>
    buildNamedSelect(
      { ...columns, [bucketColumn]: buildField(day), [resultColumn]: buildExpression(amount) },
      { from: buildTable('active_spans') },
    );
  const started = change('first_day', 'actors');
  const both = unionOf([started, change('end_day', '-actors')]);
  const keys = [bucketColumn, ...values];
  return buildNamedSelect(
    { ...fieldsNamed(keys), [resultColumn]: buildExpression(`sum(${resultColumn})`) },
    { from: buildDerivedTable(both, 'changes'), groupBy: keys, queries: { active_spans: aggregation } },
  );
}

/** The next day on which the actor has an event. */
const nextDay = (values: readonly string[]): Expression =>
  buildExpression(
    `lead(${bucketColumn}) over (partition by ${[...values, actorColumn].join(', ')} order by ${bucketColumn})`,
  );

/**
 * The sum over all intervals of a range, computed from changes: a change applies to each interval on or after its day.
 */
function sumOfChanges({ interval, buckets }: ResolvedRange): Expression {
  const [first] = buckets;
  const last = buckets.at(-1);
  if (first === undefined || last === undefined) return buildExpression(`sum(${resultColumn})`);
  const intervals =
    interval === 'hour' || interval === 'minute'
      ? eachDay(buckets)
      : wholeDays(last, interval, buckets.length);
  return buildExpression(`sum(${resultColumn} * {intervals})`, { intervals });
}

const formatDay = (bucket: DateTime): string => bucket.toFormat('yyyy-MM-dd');

/** Intervals of a day or longer. */
const wholeDays = (last: DateTime, interval: 'day' | 'week' | 'month', count: number): Expression =>
  buildExpression(`least(greatest(intDiv(toDate({last}) - ${bucketColumn} + {days}, {days}), 0), {count})`, {
    last: { value: formatDay(last) },
    days: { value: interval === 'day' ? 1 : 7 },
    count: { value: count },
  });

/** Shorter intervals. Their number varies on partial days and on days with a clock change. */
function eachDay(buckets: readonly DateTime[]): Expression {
  const counts = new Map<string, number>();
  for (const bucket of buckets) counts.set(formatDay(bucket), (counts.get(formatDay(bucket)) ?? 0) + 1);
  const terms = [...counts].map(([day, count]) =>
    buildExpression(`(${bucketColumn} <= toDate({day}) ? {count} : 0)`, {
      day: { value: day },
      count: { value: count },
    }),
  );
  return balancedSum(terms);
}

/** A sum as a balanced tree, to limit the depth of the expression. */
function balancedSum(terms: readonly Expression[]): Expression {
  const [first, second] = terms;
  if (first === undefined || second === undefined) return first ?? buildExpression('0');
  const middle = Math.ceil(terms.length / 2);
  return buildExpression('{left} + {right}', {
    left: balancedSum(terms.slice(0, middle)),
    right: balancedSum(terms.slice(middle)),
  });
}

/** Names of the GROUP BY columns. */
const groupNames = (measure: PartialMeasure, keys: LineKeys): readonly string[] => [
  ...keyNames(keys),
  ...(measure.actor === null ? [] : [actorColumn]),
];

/** The rows of a measure: one for each group of events, or for each event. */
function measureRows(measure: PartialMeasure, keys: LineKeys, events: SeriesEvents): Select {
  const { actor, parts, isGrouped } = measure;
  const columns = {
    ...keyColumns(keys),
    ...(actor !== null && { [actorColumn]: actor }),
    ...Object.fromEntries(Object.entries(parts).map(([name, { of }]) => [name, of])),
  };
  return selectFromEvents(columns, withActor(events, actor), isGrouped ? groupNames(measure, keys) : []);
}

/** Restricts events to those with an actor, if actors are counted. */
const withActor = (events: SeriesEvents, actor: Expression | null): SeriesEvents =>
  actor === null
    ? events
    : {
        ...events,
        condition: combineConditions('and', [
          events.condition,
          buildExpression('isNotNull({actor})', { actor }),
        ]),
      };

/**
 * Merges the rows of all values without a separate line, so that each actor has one row again.
 * @param rows joined with the top values
 */
function otherRows(measure: PartialMeasure, keys: LineKeys, rows: From): Select {
  const { actor, parts } = measure;
  const other = buildExpression('{other}', { other: { value: otherValue } });
  const own = Object.fromEntries(
    keyNames(keys).map((name) => [name, name === bucketColumn ? buildField(name) : other]),
  );
  const from = { from: rows, where: isOutsideTopValues() };
  if (actor === null) return buildNamedSelect({ ...own, ...fieldsNamed(Object.keys(parts)) }, from);
  const merged = Object.entries(parts).map(([name, partOf]) => [name, partOf.merged] as const);
  const columns = { ...own, [actorColumn]: buildField(actorColumn), ...Object.fromEntries(merged) };
  return buildNamedSelect(columns, { ...from, groupBy: groupNames(measure, keys) });
}

/** Aggregates rows, with one per actor, to the keys and `result`. */
function measureResults(measure: PartialMeasure, keys: LineKeys, rows: From): Select {
  const names = keyNames(keys);
  return buildNamedSelect(
    { ...fieldsNamed(names), [resultColumn]: measure.value },
    { from: rows, groupBy: names },
  );
}

/** Counts each actor once, in the first interval with an event. */
function firstIntervals(keys: LineKeys, rows: From): Select {
  const names = keyNames(keys);
  const values = names.filter((name) => name !== bucketColumn);
  const firsts = buildNamedSelect(
    {
      ...fieldsNamed([...values, actorColumn]),
      [bucketColumn]: buildExpression(`min(${bucketColumn})`),
    },
    { from: rows, groupBy: [...values, actorColumn] },
  );
  return buildNamedSelect(
    { ...fieldsNamed(names), [resultColumn]: buildExpression(`count(${actorColumn})`) },
    { from: buildDerivedTable(firsts, 'firsts'), groupBy: names },
  );
}

/** The statement of one series, which computes all of its lines. */
export interface SeriesStatement {
  readonly measure: Measure;
  readonly keys: LineKeys;
  readonly events: SeriesEvents;
  /** How many values have a separate line. */
  readonly limit: number;
  /** A query for these values if they are not the largest of this series alone; see {@link topValuesOfAny}. */
  readonly topValuesQuery: Query | null;
  /**
   * How rows are aggregated: for each interval; each actor only in its first interval; or actors active in a window of
   * `days`.
   */
  readonly aggregation:
    | 'each interval'
    | 'first interval'
    | { readonly days: number; readonly range: ResolvedRange };
}

const rowsName = 'trend_rows';
const resultsName = 'results_of_values';
const topValuesName = 'kept_values';

/** A query of the keys and `result`. For active windows, `result` is the change from day to day. */
export function seriesStatement(series: SeriesStatement): Query {
  const { measure } = series;
  return measure.form === 'whole' ? wholeStatement(series, measure) : partialStatement(series, measure);
}

/** The values of a series with a separate line, as rows with one column per breakdown. */
export function topValuesOfSeries(series: SeriesStatement): Select {
  const { measure, keys, events, limit } = series;
  const count = keys.values.length;
  if (measure.form === 'whole')
    return topValues(
      buildDerivedTable(wholeResults(series, measure, keys.values), resultsName),
      count,
      limit,
      sumOfFinite,
    );
  const rows = buildDerivedTable(measureRows(measure, keys, events), rowsName);
  return topValues(
    buildDerivedTable(resultsOf(series, measure, rows), resultsName),
    count,
    limit,
    totalOf(series),
  );
}

/** The values that have a separate line in any of several series. */
export function topValuesOfAny(series: readonly SeriesStatement[]): Query {
  const columns = topValueColumns(series[0]?.keys.values.length ?? 0);
  const from = buildDerivedTable(unionOf(series.map(topValuesOfSeries)), 'kept_of_series');
  return buildNamedSelect(fieldsNamed(columns), { from, groupBy: columns });
}

const sumOfFinite = buildExpression(`sum(isFinite(toFloat(${resultColumn})) ? toFloat(${resultColumn}) : 0)`);

function wholeResults(
  { keys, events }: SeriesStatement,
  { direct }: WholeMeasure,
  values: readonly Expression[],
): Select {
  const columns = { ...keyColumns({ ...keys, values }), [resultColumn]: direct };
  return selectFromEvents(columns, events, keyNames(keys));
}

function wholeStatement(series: SeriesStatement, measure: WholeMeasure): Select {
  const { values } = series.keys;
  if (values.length === 0) return wholeResults(series, measure, []);
  return wholeResults(
    series,
    measure,
    withOtherValue(values, series.topValuesQuery ?? topValuesOfSeries(series)),
  );
}

function partialStatement(series: SeriesStatement, measure: PartialMeasure): Query {
  const { keys, events, limit } = series;
  const count = keys.values.length;
  if (count === 0 && measure.direct !== null && series.aggregation === 'each interval')
    return selectFromEvents({ ...keyColumns(keys), [resultColumn]: measure.direct }, events, keyNames(keys));
  const rows = measureRows(measure, keys, events);
  if (count === 0) return resultsOf(series, measure, buildDerivedTable(rows, rowsName));
  const results = resultsOf(series, measure, buildTable(rowsName));
  const topValuesQuery =
    series.topValuesQuery ?? topValues(buildTable(resultsName), count, limit, totalOf(series));
  const ofTopValues = buildNamedSelect(fieldsNamed([...keyNames(keys), resultColumn]), {
    from: joinTopValues('inner', resultsName, topValuesName, count),
    queries: { [rowsName]: rows, [resultsName]: results, [topValuesName]: topValuesQuery },
  });
  const others = otherRows(measure, keys, joinTopValues('left', rowsName, topValuesName, count));
  return unionOf([ofTopValues, resultsOf(series, measure, buildDerivedTable(others, 'other_rows'))]);
}

function resultsOf({ aggregation, keys }: SeriesStatement, measure: PartialMeasure, rows: From): Select {
  if (aggregation === 'each interval') return measureResults(measure, keys, rows);
  if (aggregation === 'first interval') return firstIntervals(keys, rows);
  return activeChanges(rows, aggregation.days, keys.values.length);
}

const totalOf = ({ aggregation }: SeriesStatement): Expression =>
  typeof aggregation === 'string' ? sumOfResults : sumOfChanges(aggregation.range);

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
