import type { Measurement, Statistics } from '../result.ts';

/** A statement over all rows. CPU time is that of PostgreSQL with its parallel workers; null for servers elsewhere. */
export interface StatementResult {
  readonly seconds: Statistics;
  readonly cpu_seconds: Statistics | null;
}

/** Result of `exportd bench fingerprint`. Times are in seconds. */
export interface FingerprintBenchResult extends Measurement {
  readonly events: number;
  readonly repeat: number;
  readonly count: StatementResult;
  readonly fingerprint: StatementResult;
  /** Medians over the repeats: the fingerprint divided by the count. */
  readonly ratio: { readonly seconds: number; readonly cpu_seconds: number | null };
  /** Cutting the interval into four ranges by its fingerprint, and by numbering its rows. */
  readonly cut: Statistics;
  readonly numbering: StatementResult;
}
