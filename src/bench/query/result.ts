import type { Measurement, Skipped, Statistics } from '../result.ts';

/** An insight, queried by exportd and by hand-written SQL. */
export interface InsightResult {
  /** Milliseconds of the hand-written statement, including its transaction. */
  readonly floor_ms: Statistics;
  /** Milliseconds of exportd on one connection: catalog queries, compilation, statements and the result. */
  readonly product_ms: Statistics;
  /** Median over the repeats: time of exportd divided by that of the floor. */
  readonly ratio: number;
  /** Whether both returned the same result. */
  readonly agrees: boolean;
  /** If they differ, the start of each result as JSON. */
  readonly difference: { readonly floor: string; readonly product: string } | null;
}

/** Result of `exportd bench query`. */
export interface QueryBenchResult extends Measurement {
  readonly events: number;
  readonly days: number;
  readonly persons: number;
  readonly repeat: number;
  readonly insights: readonly ({ readonly name: string } & (InsightResult | Skipped))[];
}
