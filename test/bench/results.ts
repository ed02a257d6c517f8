import { writeFileSync } from 'node:fs';

/** A value of every repeat. The distance of minimum and median shows how noisy the machine was. */
export interface Statistics {
  readonly minimum: number;
  readonly median: number;
  /** In the order of the repeats. */
  readonly all: readonly number[];
}

/** The reason why something was not measured. */
export interface Skipped {
  readonly skipped: string;
}

/** A table of results. */
export interface ResultTable {
  readonly title?: string;
  readonly headings: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** The median. @throws RangeError without values. */
export function medianOf(values: readonly number[]): number {
  const sorted = values.toSorted((left, right) => left - right);
  const [low, high] = [
    sorted[Math.floor((sorted.length - 1) / 2)],
    sorted[Math.ceil((sorted.length - 1) / 2)],
  ];
  if (low === undefined || high === undefined) throw new RangeError('The median of no values is undefined.');
  return (low + high) / 2;
}

/**
 * The smallest value that is not exceeded by at least this share of the values.
 * @throws RangeError without values
 */
export function percentileOf(values: readonly number[], share: number): number {
  const sorted = values.toSorted((left, right) => left - right);
  const value = sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
  if (value === undefined) throw new RangeError('The percentile of no values is undefined.');
  return value;
}

/** Statistics of all repeats, rounded to thousandths. */
export const statisticsOf = (all: readonly number[]): Statistics => ({
  minimum: rounded(Math.min(...all)),
  median: rounded(medianOf(all)),
  all: all.map(rounded),
});

/** Rounds to thousandths: more digits would only look exact. */
export const rounded = (value: number): number => Math.round(value * 1_000) / 1_000;

/** Bytes as megabytes for a table; a dash for what was not measured. */
export const megabytes = (bytes: number | null): string => (bytes === null ? '-' : (bytes / 1e6).toFixed(1));

/** Writes a result as `--json` prints it. */
export const saveResult = (file: string, result: object): void =>
  writeFileSync(file, `${JSON.stringify(result, null, 2)}\n`);
