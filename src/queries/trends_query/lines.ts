import type { ResolvedRange } from '../dates/resolved_range.ts';
import type { DialectRows } from '../dialect_reader.ts';
import { nullValue, otherValue } from './breakdown_placeholders.ts';
import { keyOfRow, keyOfBucket } from './buckets.ts';
import { checkPoints } from './point_limit.ts';

/** One line of a series: a value for each interval of the range, or one for the whole range. */
export interface Line {
  /** Its breakdown values; empty without a breakdown. */
  readonly values: readonly string[];
  readonly data: readonly number[];
}

/** The format of the rows of a series' statement. */
export interface RowForm {
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
