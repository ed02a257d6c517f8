import type { Measurement } from '../result.ts';

/** What each number of workers has, for both measurements. */
interface WorkersMeasurement {
  readonly workers: number;
  readonly seconds: number;
  /** Throughput divided by that of the first number of workers, with the same delay. */
  readonly ratio: number;
  /** Cores that all programs of the machine used on average, the servers included. */
  readonly busy_cores: number;
  /** CPU time of all workers. Null without /proc. */
  readonly worker_cpu_seconds: number | null;
  /** Maximum resident memory of each worker meanwhile. Null without /proc. */
  readonly peak_memory_bytes: readonly (number | null)[];
}

/** One interval whose ranges all workers export, from Running to Completed. */
export interface LargeIntervalResult extends WorkersMeasurement {
  readonly rows: number;
  readonly rows_per_second: number;
  /** What the throttled connections delivered, which is binary COPY. */
  readonly megabytes_per_second: number;
  /** Ranges that each worker exported. */
  readonly ranges_per_worker: readonly number[];
}

/** Many small intervals of several exports, from the first that is Running to the last that is Completed. */
export interface SmallIntervalsResult extends WorkersMeasurement {
  /** How long each request to S3 is delayed. */
  readonly s3_delay_seconds: number;
  readonly intervals: number;
  readonly intervals_per_second: number;
  /** Intervals that each worker exported. */
  readonly intervals_per_worker: readonly number[];
  readonly s3_requests_per_interval: number;
}

/** Result of `exportd bench workers`. Times are in seconds, sizes in bytes. */
export interface WorkersBenchResult extends Measurement {
  /** Intervals, or ranges of them, that a worker exports at the same time. */
  readonly slots: number;
  readonly large_interval: {
    readonly format: string;
    /** What each connection to the source delivers at most. */
    readonly connection_bytes_per_second: number;
    readonly measurements: readonly LargeIntervalResult[];
  };
  readonly small_intervals: {
    readonly exports: number;
    readonly rows_per_interval: number;
    /** For each delay, with each number of workers. */
    readonly measurements: readonly SmallIntervalsResult[];
  };
}
