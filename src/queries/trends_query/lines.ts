import type { DialectRows } from '../dialect_reader.ts';
import { QueryError } from '../query_errors.ts';
import { countOfAll } from '../query_fields.ts';
import { nullValue, otherValue } from './breakdown.ts';
import { keyOfRow } from './question.ts';
import { type DisplayForm, type TrendsQuery, displayFormOf, isAdditive } from './schema.ts';
import type { SeriesPosition } from './series.ts';
import type { SeriesPlan } from './series_plan.ts';

/** One line of a series: a value for each interval of the range, or one for the whole range. */
export interface Line {
  /** Its breakdown values; empty without a breakdown. */
  readonly values: readonly string[];
  readonly data: readonly number[];
}

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

/**
 * The sorted lines of a series; a single line of zeros if a series without breakdown has no events.
 * @throws QueryError if they have too many values
 */
export function linesOf(
  { rows }: DialectRows,
  { keys, question, range, position }: SeriesPlan,
): readonly Line[] {
  const firstValue = keys.bucket === null ? 0 : 1;
  const byLine = new Map<
    string,
    { readonly values: readonly string[]; readonly results: Map<string, number> }
  >();
  const resultsOf = (values: readonly string[]): Map<string, number> => {
    const key = JSON.stringify(values);
    const line = byLine.get(key) ?? { values, results: new Map<string, number>() };
    byLine.set(key, line);
    return line.results;
  };
  if (keys.values.length === 0) resultsOf([]);
  for (const row of rows) {
    const results = resultsOf(row.slice(firstValue, firstValue + keys.values.length).map(String));
    results.set(keys.bucket === null ? '' : keyOfRow(row[0]), numberOf(row.at(-1)));
  }
  checkPoints(byLine.size * question.length, range.buckets.length);
  const lines = [...byLine.values()].map(({ values, results }): Line => ({
    values,
    data: question.dataOf(results),
  }));
  return scaleSample(sortedLines(lines.filter(isVisible)), position);
}

const numberOf = (value: unknown): number => {
  const number = Number(value ?? 0);
  return Number.isFinite(number) ? number : 0;
};

/** The line of events without a value is hidden if it is all zero. */
const isVisible = (line: Line): boolean => !isMissing(line) || line.data.some((value) => value !== 0);

const isMissing = ({ values }: Line): boolean =>
  values.length > 0 && values.every((value) => value === nullValue);

export const isOther = ({ values }: Line): boolean => values[0] === otherValue;

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

const rank = (line: Line): number => (isOther(line) ? 2 : isMissing(line) ? 1 : 0);

function compareValues(one: readonly string[], other: readonly string[]): number {
  for (const [index, text] of one.entries()) {
    const order = Buffer.compare(Buffer.from(text), Buffer.from(other[index] ?? ''));
    if (order !== 0) return order;
  }
  return 0;
}

/** The sum of a line's points. */
export const sum = (data: readonly number[]): number => data.reduce((total, value) => total + value, 0);

/** Extrapolates lines over sampled events to all events. */
function scaleSample(
  lines: readonly Line[],
  { query: { samplingFactor: factor }, series: { math } }: SeriesPosition,
): readonly Line[] {
  if (factor === null || !isAdditive(math)) return lines;
  const scale = (value: number): number => (math === 'sum' ? value / factor : countOfAll(value, factor));
  return lines.map((line) => ({ ...line, data: line.data.map(scale) }));
}

/** The lines as results have them: with the display and the smoothing of the query. */
export function shownLines(
  lines: readonly Line[],
  { breakdownFilter, trendsFilter }: TrendsQuery,
): readonly Line[] {
  const display = displayFormOf(trendsFilter?.display);
  return lines
    .filter((line) => !(breakdownFilter?.breakdown_hide_other_aggregation && isOther(line)))
    .map((line) => transformLine(line, display, trendsFilter?.smoothingIntervals));
}

/** Applies the display and the smoothing of a query to a line. */
function transformLine(line: Line, display: DisplayForm, smoothing: number | null | undefined): Line {
  if (display === 'totalValue') return line;
  const data = display === 'cumulative' ? cumulative(line.data) : line.data;
  return { ...line, data: smoothing && smoothing > 1 ? smoothed(data, smoothing) : data };
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
