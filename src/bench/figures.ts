import type { Figures, Throughput } from './document.ts';

/** What one measurement of something that moves all rows gives. */
export interface Measurement {
  readonly seconds: number;
  readonly cpu_seconds: number;
}

/** The middle one, or the mean of the two in the middle. @throws RangeError when there is none. */
export function medianOf(values: readonly number[]): number {
  const sorted = values.toSorted((left, right) => left - right);
  const [low, high] = [
    sorted[Math.floor((sorted.length - 1) / 2)],
    sorted[Math.ceil((sorted.length - 1) / 2)],
  ];
  if (low === undefined || high === undefined) throw new RangeError('There is no median of nothing.');
  return (low + high) / 2;
}

/** The figures of all repeats, rounded to thousandths. */
export const figuresOf = (all: readonly number[]): Figures => ({
  minimum: rounded(Math.min(...all)),
  median: rounded(medianOf(all)),
  all: all.map(rounded),
});

/** The median of the ratios within each repeat, so that what slows a whole repeat down falls out. */
export const pairedRatio = (
  numerators: readonly Measurement[],
  denominators: readonly Measurement[],
): number =>
  rounded(
    medianOf(
      numerators.map(({ seconds }, repeat) => seconds / (denominators[repeat]?.seconds ?? Number.NaN)),
    ),
  );

/** Throughput of repeated measurements that each moved `rows` rows of `bytes` bytes. */
export function throughputOf(repeats: readonly Measurement[], rows: number, bytes: number): Throughput {
  const seconds = figuresOf(repeats.map((one) => one.seconds));
  return {
    seconds,
    rows_per_second: Math.round(rows / seconds.median),
    megabytes_per_second: rounded(bytes / 1e6 / seconds.median),
    cpu_seconds: figuresOf(repeats.map((one) => one.cpu_seconds)),
  };
}

/** To thousandths: more digits than that would only look exact. */
export const rounded = (value: number): number => Math.round(value * 1_000) / 1_000;
