import type { Expression, From, Select } from '@exportd/dialect/ast';
import { buildDerivedTable, buildExpression } from '@exportd/dialect/ast_builders';
import type { DateTime } from 'luxon';
import type { ResolvedRange } from '../dates.ts';
import type { Interval } from '../buckets.ts';
import { type LineKeys, actorColumn, bucketColumn, keyNames, resultColumn } from './line_keys.ts';
import type { PartialMeasure } from './measure.ts';
import { buildNamedSelect, fieldsNamed } from './named_select.ts';
import { type SeriesEvents, type SeriesPosition, seriesEvents, seriesEventsSince } from './series.ts';

/** What is asked of a series over a range, apart from what is counted: which intervals have a number, of which events. */
export interface Question {
  /** The events that its numbers are computed from; those of windows are before the range too. */
  readonly events: SeriesEvents;
  /** The interval of an event, as a key of rows; null if the range is a single interval. */
  readonly bucket: Expression | null;
  /** Aggregates the rows of a measure, with one per actor, to the keys and `result`. */
  readonly resultsOf: (rows: From, keys: LineKeys, measure: PartialMeasure) => Select;
  /** The total of a breakdown value over its results, by which values are sorted. */
  readonly total: Expression;
  /** How many rows a line may have, and one more, because intervals without events have none. */
  readonly rowsPerLine: number;
  /** How many numbers a line has. */
  readonly length: number;
  /** The numbers of a line, from its results by the interval of their row (`''` without one). */
  readonly dataOf: (results: ReadonlyMap<string, number>) => readonly number[];
}

/** A number for each interval: of the events of the interval alone. */
export function numberOfEachInterval(position: SeriesPosition, range: ResolvedRange): Question {
  const keys = intervalKeys(range, range.interval);
  return {
    events: seriesEvents(position, range),
    bucket: bucketOf(range.interval),
    resultsOf: measureResults,
    total: sumOfResults,
    rowsPerLine: range.buckets.length + 1,
    length: range.buckets.length,
    dataOf: (results) => keys.map((key) => results.get(key) ?? 0),
  };
}

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

/** Aggregates rows, with one per actor, to the keys and `result`. */
export function measureResults(rows: From, keys: LineKeys, measure: PartialMeasure): Select {
  const names = keyNames(keys);
  return buildNamedSelect(
    { ...fieldsNamed(names), [resultColumn]: measure.value },
    { from: rows, groupBy: names },
  );
}

/** The total of a value's results. */
export const sumOfResults = buildExpression(`sum(ifNull(${resultColumn}, 0))`);

/** A number for each interval: of the actors that had no event in an earlier one. Their running sum counts each once. */
export const newActorsOfEachInterval = (position: SeriesPosition, range: ResolvedRange): Question => ({
  ...numberOfEachInterval(position, range),
  resultsOf: firstIntervals,
});

/** Counts each actor once, in the first interval with an event. */
function firstIntervals(rows: From, keys: LineKeys): Select {
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

/** The start of an event's interval: a date, or a time for hours and minutes. */
export const bucketOf = (interval: Interval): Expression => starts[interval];

const starts: Readonly<Record<Interval, Expression>> = {
  minute: buildExpression('toStartOfMinute(timestamp)'),
  hour: buildExpression('toStartOfHour(timestamp)'),
  // Days are identified by their dates, which is cheaper than by their start times.
  day: buildExpression('toDate(timestamp)'),
  week: buildExpression('toStartOfWeek(timestamp)'),
  month: buildExpression('toStartOfMonth(timestamp)'),
};

/** The key of the interval in a row. */
export function keyOfRow(value: unknown): string {
  const text = String(value);
  return text.includes('T') ? String(new Date(text).getTime()) : text;
}

/** The keys of the intervals of a range, as `keyOfRow` has them. */
export const intervalKeys = ({ buckets }: ResolvedRange, interval: Interval): readonly string[] =>
  buckets.map((bucket) => keyOfBucket(bucket, interval));

/** The key of an interval, by its start. */
const keyOfBucket = (bucket: DateTime, interval: Interval): string =>
  interval === 'hour' || interval === 'minute' ? String(bucket.toMillis()) : bucket.toFormat('yyyy-MM-dd');
