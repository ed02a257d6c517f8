import type { Measurement } from '../result.ts';

/** How long the requests of a page take, sent at once as a browser sends them. Milliseconds. */
export interface MeasuredPage {
  readonly page: string;
  readonly requests: number;
  readonly bytes: number;
  readonly median_ms: number;
  readonly maximum_ms: number;
}

/** The result of `exportd bench console`. */
export interface ConsoleBenchResult extends Measurement {
  readonly exports: number;
  readonly runs: number;
  readonly pages: readonly MeasuredPage[];
}
