import type { Statistics, Throughput } from './result.ts';

/** A measurement of moving all rows. */
export interface Measurement {
  readonly seconds: number;
  readonly cpu_seconds: number;
}

/** A measurement of a program that writes the rows. */
export interface MeasuredProgram extends Measurement {
  readonly bytes: number;
  readonly peak_memory_bytes: number | null;
  readonly s3_requests: number | null;
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

/** Statistics of all repeats, rounded to thousandths. */
export const statisticsOf = (all: readonly number[]): Statistics => ({
  minimum: rounded(Math.min(...all)),
  median: rounded(medianOf(all)),
  all: all.map(rounded),
});

/** The ratios within each repeat: their median ignores repeats that are slow as a whole. */
export const pairedRatios = (
  numerators: readonly Measurement[],
  denominators: readonly Measurement[],
): Statistics =>
  statisticsOf(
    numerators.map(({ seconds }, repeat) => seconds / (denominators[repeat]?.seconds ?? Number.NaN)),
  );

/** Throughput of repeated measurements that each moved `rows` rows of `bytes` bytes. */
export function throughputOf(repeats: readonly Measurement[], rows: number, bytes: number): Throughput {
  const seconds = statisticsOf(repeats.map((one) => one.seconds));
  return {
    seconds,
    rows_per_second: Math.round(rows / seconds.median),
    megabytes_per_second: rounded(bytes / 1e6 / seconds.median),
    cpu_seconds: statisticsOf(repeats.map((one) => one.cpu_seconds)),
  };
}

/** Rounds to thousandths: more digits would only look exact. */
export const rounded = (value: number): number => Math.round(value * 1_000) / 1_000;
