import type { ResolvedRange } from '../dates/intervals.ts';
import type { DialectRows } from '../dialect_reader.ts';
import { countOfAll } from '../insight_fields.ts';
import { QueryError } from '../query_errors.ts';
import { type DisplayForm, isAdditive } from './schema.ts';
import { nullValue, otherValue } from './selects.ts';
import type { SeriesPosition } from './series_events.ts';
import { keyOfBucket, keyOfRow } from './series_plan.ts';

/**
 * The maximum number of values in a result, over all lines. More would take the memory and the time of other queries: each
 * value comes with two labels.
 */
export const maxPoints = 200_000;

/** @throws QueryError if a result has too many values */
export function checkPoints(points: number, intervals: number): void {
  if (points <= maxPoints) return;
  throw new QueryError(
    'invalid_input',
    `The result would have more than ${maxPoints} values, ${intervals} for each line. Choose a longer interval, a shorter date range or a smaller breakdown_limit.`,
    { attr: 'query__interval' },
  );
}

/** One line of a series: a value for each interval of the range, or one for the whole range. */
export interface Line {
  /** Its breakdown values; empty without a breakdown. */
  readonly values: readonly string[];
  readonly data: readonly number[];
}

/** The format of the rows of a series' statement. */
interface RowForm {
  readonly range: ResolvedRange;
  /** Number of breakdown columns. */
  readonly count: number;
  /** Whether the range is a single interval. */
  readonly isTotal: boolean;
  /** Whether results are changes from day to day. */
  readonly isChange: boolean;
}

const numberOf = (value: unknown): number => {
  const number = Number(value ?? 0);
  return Number.isFinite(number) ? number : 0;
};

/** The sum of a line's points. */
export const sum = (data: readonly number[]): number => data.reduce((total, value) => total + value, 0);

/**
 * The sorted lines of a series; a single line of zeros if a series without breakdown has no events.
 * @throws QueryError if they have too many values
 */
export function linesOf({ rows }: DialectRows, form: RowForm): readonly Line[] {
  const { count, isTotal, range } = form;
  const byLine = new Map<
    string,
    { readonly values: readonly string[]; readonly points: Map<string, number> }
  >();
  const found = (values: readonly string[]): Map<string, number> => {
    const key = JSON.stringify(values);
    const line = byLine.get(key) ?? { values, points: new Map<string, number>() };
    byLine.set(key, line);
    return line.points;
  };
  if (count === 0) found([]);
  for (const row of rows) {
    const first = isTotal ? 0 : 1;
    const points = found(row.slice(first, first + count).map(String));
    points.set(isTotal ? '' : keyOfRow(row[0]), numberOf(row.at(-1)));
  }
  checkPoints(byLine.size * (isTotal ? 1 : range.buckets.length), range.buckets.length);
  // Formatted once: a range has up to thousands of intervals, for each of up to thousands of lines.
  const keys = isTotal
    ? ['']
    : range.buckets.map((bucket) => keyOfBucket(bucket, form.isChange ? 'day' : range.interval));
  const lines = [...byLine.values()].map(({ values, points }): Line => {
    const data = form.isChange && !isTotal ? summedUp(points, keys) : keys.map((key) => points.get(key) ?? 0);
    return { values, data };
  });
  return sortedLines(lines.filter(isVisible));
}

/** The running sum of changes on the day of each interval. */
function summedUp(changes: ReadonlyMap<string, number>, intervalDays: readonly string[]): readonly number[] {
  const days = [...changes].sort(([one], [other]) => (one < other ? -1 : 1));
  let [next, active] = [0, 0];
  return intervalDays.map((day) => {
    for (let change = days[next]; change !== undefined && change[0] <= day; change = days[next]) {
      active += change[1];
      next += 1;
    }
    return active;
  });
}

const isMissing = ({ values }: Line): boolean =>
  values.length > 0 && values.every((value) => value === nullValue);
export const isOther = ({ values }: Line): boolean => values[0] === otherValue;

/** The line of events without a value is hidden if it is all zero. */
const isVisible = (line: Line): boolean => !isMissing(line) || line.data.some((value) => value !== 0);

const rank = (line: Line): number => (isOther(line) ? 2 : isMissing(line) ? 1 : 0);

/**
 * Sorts lines: values by their totals in descending order, ties by bytes; then events without a value, then all other
 * values.
 */
export const sortedLines = (
  lines: readonly Line[],
  totalOf: (data: readonly number[]) => number = sum,
): readonly Line[] =>
  lines
    .map((line) => ({ line, total: totalOf(line.data) }))
    .sort(
      ({ line: one, total }, { line: other, total: otherTotal }) =>
        rank(one) - rank(other) || otherTotal - total || compareValues(one.values, other.values),
    )
    .map(({ line }) => line);

function compareValues(one: readonly string[], other: readonly string[]): number {
  for (const [index, text] of one.entries()) {
    const order = Buffer.compare(Buffer.from(text), Buffer.from(other[index] ?? ''));
    if (order !== 0) return order;
  }
  return 0;
}

/** Extrapolates lines over sampled events to all events. */
export function scaleSample(
  lines: readonly Line[],
  { query: { samplingFactor: factor }, series: { math } }: SeriesPosition,
): readonly Line[] {
  if (factor === null || !isAdditive(math)) return lines;
  const scale = (value: number): number => (math === 'sum' ? value / factor : countOfAll(value, factor));
  return lines.map((line) => ({ ...line, data: line.data.map(scale) }));
}

/** The running sum. */
function cumulative(data: readonly number[]): readonly number[] {
  let total = 0;
  return data.map((value) => (total += value));
}

/** The moving average over up to `points` points, rounded down. */
const smoothed = (data: readonly number[], points: number): readonly number[] =>
  data.map((_, index) => {
    const window = data.slice(Math.max(0, index - points + 1), index + 1);
    return Math.floor(window.reduce((total, value) => total + value, 0) / window.length);
  });

/** Applies the display and the smoothing of a query to a line. */
export function transformLine(line: Line, display: DisplayForm, smoothing: number | null | undefined): Line {
  if (display === 'totalValue') return line;
  const data = display === 'cumulative' ? cumulative(line.data) : line.data;
  return { ...line, data: smoothing && smoothing > 1 ? smoothed(data, smoothing) : data };
}
