import { dayOf, earliestFor, labelOf, previousRange, type ResolvedRange, resolveRange } from '../dates.ts';
import type { DialectReader, DialectRows } from '../dialect_reader.ts';
import { countOfAll } from '../query_fields.ts';
import { QueryError } from '../query_errors.ts';
import type { QueryProject } from '../query_kind.ts';
import {
  type DisplayForm,
  displayFormOf,
  isAdditive,
  type TrendsQuery,
  type TrendsSeries,
} from './schema.ts';
import { breakdownLabel, nullValue, otherValue, type SeriesPosition } from './selects.ts';
import { keyOfBucket, keyOfRow } from './statement.ts';

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
const sum = (data: readonly number[]): number => data.reduce((total, value) => total + value, 0);

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
const sortedLines = (
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

/** A parsed formula over the values of its series at one point. */
interface Formula {
  /** Indexes of the series that it reads, from 0. */
  readonly series: readonly number[];
  /** Division by zero and overflow return 0. */
  readonly evaluate: (valueOf: (series: number) => number) => number;
}

/** A syntax error in a formula. The offset is from the start of its text. */
class FormulaError extends Error {
  override readonly name = 'FormulaError';
  readonly offset: number;

  constructor(message: string, offset: number) {
    super(message);
    this.offset = offset;
  }
}

type Evaluator = (valueOf: (series: number) => number) => number;
interface Token {
  readonly text: string;
  readonly offset: number;
}

const tokenPattern = /\s*(\*\*|[-+*/%()]|\d+(?:\.\d*)?(?:e[-+]?\d+)?|\.\d+(?:e[-+]?\d+)?|[a-z]+)/iy;
/** Limits the depth of recursion. */
const maxTokens = 1_000;

function tokensOf(text: string): readonly Token[] {
  const tokens: Token[] = [];
  tokenPattern.lastIndex = 0;
  let end = 0;
  while (text.slice(end).trim() !== '') {
    const match = tokenPattern.exec(text);
    const found = match?.[1];
    if (found === undefined) {
      const offset = end + (text.slice(end).length - text.slice(end).trimStart().length);
      throw new FormulaError(`\`${text.charAt(offset)}\` is not allowed in a formula.`, offset);
    }
    end = tokenPattern.lastIndex;
    tokens.push({ text: found, offset: end - found.length });
    if (tokens.length > maxTokens) throw new FormulaError('The formula is too long.', end);
  }
  return tokens;
}

const finite = (value: number): number => (Number.isFinite(value) ? value : 0);

const operations: Readonly<Record<string, (left: number, right: number) => number>> = {
  '+': (left, right) => left + right,
  '-': (left, right) => left - right,
  '*': (left, right) => left * right,
  '/': (left, right) => finite(left / right),
  '%': (left, right) => finite(left % right),
  '**': (left, right) => finite(left ** right),
};

/**
 * Parses arithmetic over letters and numbers, such as `A / (A + B) * 100`. Separate from the dialect's parser, which
 * has no `**`; here it binds tighter than a preceding sign.
 */
class FormulaParser {
  readonly #text: string;
  readonly #tokens: readonly Token[];
  readonly series = new Set<number>();
  #at = 0;

  constructor(text: string) {
    this.#text = text;
    this.#tokens = tokensOf(text);
  }

  whole(): Evaluator {
    const value = this.#sum();
    const rest = this.#tokens[this.#at];
    if (rest !== undefined)
      throw new FormulaError(`Expected an operator before \`${rest.text}\`.`, rest.offset);
    return value;
  }

  #chain(operators: readonly string[], operand: () => Evaluator): Evaluator {
    let value = operand();
    for (;;) {
      const operation = operations[this.#take(operators) ?? ''];
      if (operation === undefined) return value;
      const [left, right] = [value, operand()];
      value = (valueOf) => operation(left(valueOf), right(valueOf));
    }
  }

  #sum(): Evaluator {
    return this.#chain(['+', '-'], () => this.#chain(['*', '/', '%'], () => this.#signed()));
  }

  #signed(): Evaluator {
    const sign = this.#take(['-', '+']);
    if (sign === undefined) return this.#power();
    const value = this.#signed();
    return sign === '-' ? (valueOf) => -value(valueOf) : value;
  }

  /** Right-associative: `2 ** 3 ** 2` is 512. */
  #power(): Evaluator {
    const base = this.#atom();
    const operation = operations[this.#take(['**']) ?? ''];
    if (operation === undefined) return base;
    const exponent = this.#signed();
    return (valueOf) => operation(base(valueOf), exponent(valueOf));
  }

  #atom(): Evaluator {
    const token = this.#tokens[this.#at];
    if (token === undefined) throw new FormulaError('The formula is incomplete.', this.#text.length);
    this.#at += 1;
    if (token.text === '(') {
      const inner = this.#sum();
      if (this.#take([')']) === undefined)
        throw new FormulaError('A parenthesis is not closed.', token.offset);
      return inner;
    }
    if (/^[\d.]/.test(token.text)) {
      const number = finite(Number(token.text));
      return () => number;
    }
    if (/^[a-z]$/i.test(token.text)) {
      const series = token.text.toUpperCase().charCodeAt(0) - 65;
      this.series.add(series);
      return (valueOf) => valueOf(series);
    }
    throw new FormulaError(
      /^[a-z]/i.test(token.text)
        ? `\`${token.text}\` is not a series. Series are single letters, A for the first.`
        : `Expected a series or a number before \`${token.text}\`.`,
      token.offset,
    );
  }

  #take(operators: readonly string[]): string | undefined {
    const found = this.#tokens[this.#at]?.text;
    if (found === undefined || !operators.includes(found)) return undefined;
    this.#at += 1;
    return found;
  }
}

/** Parses a formula such as `(A + B) / 2`. @throws FormulaError */
export function parseFormula(text: string): Formula {
  const parser = new FormulaParser(text);
  const value = parser.whole();
  return { series: [...parser.series], evaluate: (valueOf) => finite(value(valueOf)) };
}

/** A formula of a query and the label of its lines. */
export interface NamedFormula extends Formula {
  readonly label: string;
}

/** The formulas of a query, from any of the three fields. @throws QueryError */
export function formulasOf({ trendsFilter, series }: TrendsQuery): readonly NamedFormula[] {
  const path = 'query__trendsFilter';
  const { formula, formulas, formulaNodes } = trendsFilter ?? {};
  const written = formulaNodes?.length
    ? formulaNodes.map((node, index) => ({ ...node, attr: `${path}__formulaNodes__${index}__formula` }))
    : formulas?.length
      ? formulas.map((text, index) => ({
          formula: text,
          custom_name: null,
          attr: `${path}__formulas__${index}`,
        }))
      : [{ formula: formula ?? '', custom_name: null, attr: `${path}__formula` }];
  return written
    .filter((one) => one.formula.trim() !== '')
    .map((one) => ({
      ...readFormula(one.formula, series.length, one.attr),
      label: one.custom_name ?? `Formula (${one.formula})`,
    }));
}

function readFormula(text: string, count: number, attr: string): Formula {
  const invalid = (message: string): QueryError => new QueryError('invalid_input', message, { attr });
  let formula: Formula;
  try {
    formula = parseFormula(text);
  } catch (error) {
    if (!(error instanceof FormulaError)) throw error;
    throw invalid(`${error.message} (character ${error.offset + 1} of the formula)`);
  }
  const missing = formula.series.find((index) => index >= count);
  if (missing === undefined) return formula;
  const letter = String.fromCharCode(65 + missing);
  throw invalid(
    `The formula uses series ${letter}, but the query has ${count === 1 ? 'only A' : `only A to ${String.fromCharCode(64 + count)}`}.`,
  );
}

/**
 * The lines of a formula: one for each breakdown value of any of its series. A series without that value is 0.
 * @param length of each line
 * @param totalOf the value that lines are sorted by
 */
export function formulaLines(
  { series, evaluate }: Formula,
  linesBySeries: readonly (readonly Line[])[],
  length: number,
  totalOf: (data: readonly number[]) => number,
): readonly Line[] {
  const used = series.length === 0 ? linesBySeries.map((_, index) => index) : series;
  const byValues = new Map<string, Map<number, Line>>();
  for (const index of used)
    for (const line of linesBySeries[index] ?? []) {
      const key = JSON.stringify(line.values);
      const lines = byValues.get(key) ?? new Map<number, Line>();
      byValues.set(key, lines.set(index, line));
    }
  const lines = [...byValues.values()].map((bySeries): Line => {
    const values = [...bySeries.values()][0]?.values ?? [];
    const data = Array.from({ length }, (_, point) =>
      evaluate((index) => bySeries.get(index)?.data[point] ?? 0),
    );
    return { values, data };
  });
  return sortedLines(lines, totalOf);
}

/** The range of a query, or the one that it is compared with. */
interface Period {
  readonly name: 'current' | 'previous';
  readonly range: ResolvedRange;
}

/** What date ranges are resolved with. */
export interface PeriodContext {
  readonly project: QueryProject;
  readonly now: Date;
  readonly reader: DialectReader;
}

/** The ranges of a query, the current one first. @throws QueryError */
export async function periodsOf(
  query: Pick<TrendsQuery, 'dateRange' | 'interval' | 'compareFilter'>,
  { project, now, reader }: PeriodContext,
): Promise<readonly [Period, ...Period[]]> {
  const { dateRange, interval, compareFilter } = query;
  const earliest = await earliestFor(dateRange, reader);
  const context = { project, now, earliest };
  const range = resolveRange(dateRange, interval, context);
  const current: Period = { name: 'current', range };
  if (!compareFilter?.compare) return [current];
  const before = previousRange(dateRange, compareFilter.compare_to ?? null, range, context);
  return [current, { name: 'previous', range: before }];
}

/** The series or formula of a line. */
interface LineSource {
  readonly order: number;
  readonly series: TrendsSeries | null;
  /** The label of a formula; null for a series. */
  readonly label: string | null;
}

/** The total of a line; the last point of a cumulative line. */
export const countOf = (display: DisplayForm, data: readonly number[]): number =>
  display === 'cumulative' ? (data.at(-1) ?? 0) : sum(data);

const eventOf = (series: TrendsSeries | null): string | null =>
  series?.kind === 'EventsNode' ? (series.event ?? null) : null;

function labelOfLine({ values }: Line, { series, label }: LineSource, several: boolean): string {
  if (label !== null) return label;
  const event = eventOf(series) ?? 'All events';
  if (values.length === 0) return event;
  return several ? `${event} - ${breakdownLabel(values)}` : breakdownLabel(values);
}

/** The names of a period's intervals, which all of its lines share; empty for totals. */
interface Axis {
  readonly days: readonly string[];
  readonly labels: readonly string[];
}

export function axisOf({ range }: Period, query: TrendsQuery): Axis {
  if (displayFormOf(query.trendsFilter?.display) === 'totalValue') return { days: [], labels: [] };
  const { interval, buckets } = range;
  return {
    days: buckets.map((bucket) => dayOf(bucket, interval)),
    labels: buckets.map((bucket) => labelOf(bucket, interval, range)),
  };
}

/** One item of a query's `results`. */
export function resultOf(
  line: Line,
  source: LineSource,
  period: Period & Axis,
  query: TrendsQuery,
): Record<string, unknown> {
  const display = displayFormOf(query.trendsFilter?.display);
  const isTotal = display === 'totalValue';
  const { days, labels } = period;
  const data = isTotal ? [] : line.data;
  return {
    action: source.series === null ? null : actionOf(source.series, source.order, days),
    order: source.order,
    label: labelOfLine(line, source, query.series.length > 1),
    count: countOf(display, data),
    data,
    labels,
    days,
    ...(isTotal && { aggregated_value: line.data[0] ?? 0 }),
    ...(line.values.length > 0 && { breakdown_value: breakdownValueOf(line, query) }),
    ...(query.compareFilter?.compare && { compare: true, compare_label: period.name }),
    filter: filterOf(query),
  };
}

/** A list if the query uses the field `breakdowns`. */
const breakdownValueOf = ({ values }: Line, { breakdownFilter }: TrendsQuery): unknown =>
  breakdownFilter?.breakdowns?.length ? values : values[0];

const actionOf = (series: TrendsSeries, order: number, days: readonly string[]): Record<string, unknown> => ({
  id: eventOf(series),
  name: series.name ?? eventOf(series) ?? 'All events',
  custom_name: series.custom_name ?? null,
  type: 'events',
  order: order,
  math: series.math,
  math_property: series.math_property ?? null,
  math_hogql: series.math_hogql ?? null,
  math_group_type_index: series.math_group_type_index ?? null,
  days,
  properties: series.properties ?? [],
});

/** A summary of the query's options. */
const filterOf = ({
  interval,
  dateRange,
  breakdownFilter,
  compareFilter,
  filterTestAccounts,
}: TrendsQuery): Record<string, unknown> => ({
  insight: 'TRENDS',
  interval,
  date_from: dateRange?.date_from ?? null,
  date_to: dateRange?.date_to ?? null,
  filter_test_accounts: filterTestAccounts,
  compare: compareFilter?.compare ?? false,
  breakdown: breakdownFilter?.breakdown ?? null,
  breakdown_type: breakdownFilter?.breakdown_type ?? null,
  breakdowns: breakdownFilter?.breakdowns ?? null,
});
