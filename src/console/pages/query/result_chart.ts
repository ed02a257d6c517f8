import type { ResultTable } from '../../../client/result_table.ts';
import { momentOfClocks } from '../../formatting/format.ts';
import { textOfValue, valueKindOf } from './result_values.ts';

/** Values of one colour. */
interface ChartSeries {
  readonly label: string;
  readonly values: readonly (number | null)[];
}

/** What a result can be drawn as, or why it cannot. */
export type Chart =
  | {
      readonly kind: 'times';
      readonly label: string;
      /** Seconds since 1970, ascending. */
      readonly times: readonly number[];
      readonly series: readonly ChartSeries[];
      /** What is left out; null if nothing is. */
      readonly omitted: string | null;
    }
  | {
      readonly kind: 'bars';
      readonly label: string;
      /** A bar for each, with a part for each series. */
      readonly names: readonly string[];
      readonly series: readonly ChartSeries[];
      readonly omitted: string | null;
    }
  | { readonly kind: 'none'; readonly because: string };

const maxBars = 50;
/** As many as there are colours. */
const maxSeries = 10;

type Row = ResultTable['results'][number];

const none = (because: string): Chart => ({ kind: 'none', because });

/**
 * The chart of a result: its numbers over its first column of times, with a line for each number and each text beside them;
 * else its first numbers by its first texts, in parts by the other texts.
 * @param zone of times without an offset
 */
export function chartOf({ results, types }: Pick<ResultTable, 'results' | 'types'>, zone: string): Chart {
  const columnsOf = (kind: string): number[] =>
    types.flatMap(([, type], index) => (valueKindOf(type) === kind ? [index] : []));
  const [numbers, texts, [time]] = [columnsOf('number'), columnsOf('text'), columnsOf('time')];
  const columns: Columns = { types, numbers, texts };
  if (results.length < 2) return none('the result has one row.');
  if (numbers.length === 0) return none('no column is a number: select count() or another one.');
  if (time !== undefined) {
    const chart = timesOf(results, columns, time, zone);
    // All rows have the same time: texts tell them apart.
    if (chart.kind !== 'none' || texts.length === 0 || distinct(results, time) > 1) return chart;
  }
  return barsOf(results, columns);
}

interface Columns {
  readonly types: ResultTable['types'];
  readonly numbers: readonly number[];
  readonly texts: readonly number[];
}

const nameOf = ({ types }: Columns, index: number): string => types[index]?.[0] ?? '';
const namesOf = (columns: Columns, indexes: readonly number[]): string =>
  indexes.map((index) => nameOf(columns, index)).join(' and ');

const distinct = (rows: readonly Row[], column: number): number =>
  new Set(rows.map((row) => textOfValue(row[column] ?? null))).size;

const cellName = (value: unknown): string => {
  if (value === null || value === undefined) return 'null';
  return textOfValue(value) === '' ? '(empty)' : textOfValue(value);
};

const labelOf = (row: Row, indexes: readonly number[]): string =>
  indexes.map((index) => cellName(row[index])).join(' · ');

/** Times with an offset, and those of the clocks of a zone. */
function secondsOf(value: unknown, zone: string): number {
  const text = textOfValue(value);
  const clocks = /^(\d{4,}-\d\d-\d\d)(?:[T ](\d\d:\d\d:\d\d)(?:\.\d+)?)?$/.exec(text);
  const moment = clocks
    ? (momentOfClocks(`${clocks[1] ?? ''}T${clocks[2] ?? '00:00:00'}`, zone) ?? '')
    : text;
  return Date.parse(moment) / 1_000;
}

function timesOf(results: readonly Row[], columns: Columns, time: number, zone: string): Chart {
  const { numbers, texts } = columns;
  const rows = results
    .map((row) => ({ row, at: secondsOf(row[time], zone) }))
    .filter(({ at }) => Number.isFinite(at))
    .sort((one, other) => one.at - other.at);
  const times = [...new Set(rows.map(({ at }) => at))];
  if (times.length < 2) return none(`all rows have the same ${nameOf(columns, time)}.`);
  if (texts.length === 0 && times.length < rows.length)
    return none(
      `several rows have the same ${nameOf(columns, time)}, and no text tells them apart: group by it.`,
    );
  const indexOf = new Map(times.map((at, index) => [at, index]));
  const pivot = pivotOf(columns, times.length);
  for (const { row, at } of rows)
    if (!pivot.add(row, indexOf.get(at) ?? 0, texts))
      return none(
        `several rows have the same ${namesOf(columns, [time, ...texts])}: group by ${texts.length > 1 ? 'all of them' : 'both'}.`,
      );
  return {
    kind: 'times',
    label: `${namesOf(columns, numbers)} by ${namesOf(columns, [time, ...texts])}`,
    times,
    ...pivot.largest(),
  };
}

function barsOf(results: readonly Row[], columns: Columns): Chart {
  const { numbers, texts } = columns;
  const [name = numbers[0], ...parts] = texts;
  const [value] = texts.length === 0 ? numbers.slice(1) : numbers;
  if (value === undefined || name === undefined)
    return none('the result has one column: add one to draw it by, such as a time or a name.');
  const names = [...new Set(results.map((row) => cellName(row[name])))];
  const isGrouped = parts.length > 0;
  if (!isGrouped && names.length < results.length)
    return none(`several rows have the same ${nameOf(columns, name)}: group by it.`);
  const indexOf = new Map(names.map((one, index) => [one, index]));
  const ofValue: Columns = { ...columns, numbers: [value] };
  const pivot = pivotOf(ofValue, names.length);
  for (const row of results)
    if (!pivot.add(row, indexOf.get(cellName(row[name])) ?? 0, parts))
      return none(`several rows have the same ${namesOf(columns, texts)}: group by all of them.`);
  const { series, omitted } = pivot.largest();
  const hidden = names.length - maxBars;
  const more = hidden > 0 ? `The first ${maxBars} of ${names.length} bars are drawn.` : null;
  return {
    kind: 'bars',
    label: `${nameOf(columns, value)} by ${namesOf(columns, [name, ...parts])}`,
    names: names.slice(0, maxBars),
    series: series.map((one) => ({ ...one, values: one.values.slice(0, maxBars) })),
    omitted: [omitted, more].filter((one) => one !== null).join(' ') || null,
  };
}

/** Rows as series: one for each number and each label of texts. */
function pivotOf(columns: Columns, length: number) {
  const { numbers } = columns;
  const byLabel = new Map<string, (number | null)[]>();
  const filled = new Set<string>();
  return {
    /** @returns false for a second row at a position of the same series */
    add: (row: Row, position: number, texts: readonly number[]): boolean => {
      const text = texts.length > 0 ? labelOf(row, texts) : null;
      const place = `${position} ${text ?? ''}`;
      if (filled.has(place)) return false;
      filled.add(place);
      for (const number of numbers) {
        const ofNumber = text === null || numbers.length > 1 ? nameOf(columns, number) : null;
        const label = [text, ofNumber].filter((one) => one !== null).join(' · ');
        const values = byLabel.get(label) ?? Array.from<number | null>({ length }).fill(null);
        values[position] = numberOf(row[number]);
        byLabel.set(label, values);
      }
      return true;
    },
    /** The series with the largest sums, in the order of the rows. */
    largest: (): { readonly series: readonly ChartSeries[]; readonly omitted: string | null } => {
      const all = [...byLabel].map(([label, values]) => ({
        label,
        values,
        total: values.reduce<number>((sum, value) => sum + Math.abs(value ?? 0), 0),
      }));
      const least = all.map(({ total }) => total).toSorted((one, other) => other - one)[maxSeries - 1] ?? 0;
      const kept = all.filter(({ total }) => total >= least).slice(0, maxSeries);
      return {
        series: kept.map(({ label, values }) => ({ label, values })),
        omitted:
          all.length > kept.length ? `The ${kept.length} largest of ${all.length} series are drawn.` : null,
      };
    },
  };
}

/** Also of an ExactNumber, as the nearest number. */
function numberOf(value: unknown): number | null {
  if (value === null || value === undefined || value === '') return null;
  const number = Number(value);
  return Number.isFinite(number) ? number : null;
}
