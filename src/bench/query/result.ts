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

/** Milliseconds. */
export interface Percentiles {
  readonly median: number;
  readonly p95: number;
  readonly maximum: number;
}

/** A trivial query of one project, alone and beside the heavy queries of another. */
export interface LatencyResult {
  /** Clients that send one heavy query after the other. */
  readonly heavy_clients: number;
  /** Their statements that ran at the end of the measurement. */
  readonly heavy_statements: number;
  /** Responses that they received, by status. */
  readonly heavy_statuses: Readonly<Record<string, number>>;
  readonly alone_ms: Percentiles;
  readonly beside_ms: Percentiles;
  /** Until the last of their statements had ended after they disconnected. */
  readonly cancelled_after_ms: number;
}

/** Compile times of texts in which one construct repeats. */
export interface CompileResult {
  readonly name: string;
  readonly times: readonly { readonly length: number; readonly ms: number }[];
  /** Why the longest text is rejected, apart from limits on its size; null if it compiles. */
  readonly rejection: string | null;
}

/** A server that runs a heavy query four times at once. */
export interface ServerLoadResult {
  readonly name: string;
  readonly status: number;
  readonly response_bytes: number;
  readonly ms: number;
  /** The longest response time of a request that needs nothing but the event loop. */
  readonly longest_silence_ms: number;
  /** CPU time of the longest turn of the server's event loop. */
  readonly longest_turn_ms: number;
  /** Null without /proc. */
  readonly peak_memory_bytes: number | null;
}

/** Result of `exportd bench query`. */
export interface QueryBenchResult extends Measurement {
  readonly events: number;
  readonly days: number;
  readonly persons: number;
  readonly repeat: number;
  readonly insights: readonly ({ readonly name: string } & (InsightResult | Skipped))[];
  /** Null if it was not measured. */
  readonly latency: LatencyResult | null;
  /** Empty if they were not measured. */
  readonly compile_times: readonly CompileResult[];
  readonly server_load: readonly ServerLoadResult[];
}
