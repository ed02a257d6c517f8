import type { Measurement, Statistics } from '../result.ts';

/** Exports of the healthy export's hours: seconds from the request of the backfill to the Completed run. */
export interface HealthyExports {
  readonly seconds: Statistics;
  /** Median, divided by that of the exports alone. */
  readonly ratio: number;
}

/** Result of `exportd bench isolation`. Times are in seconds. */
export interface IsolationBenchResult extends Measurement {
  readonly events: number;
  readonly repeat: number;
  /** Projects whose bucket accepts connections and never responds, and active runs of each. */
  readonly projects: number;
  readonly runs: number;
  readonly alone: Statistics;
  /** While the runs of the silent buckets start: the workers are busy with starting them. */
  readonly while_starting: HealthyExports;
  /** While all of them wait for their bucket. */
  readonly while_waiting: HealthyExports;
  /** Until the runs of the silent buckets have ended after their exports were deleted. */
  readonly deletion_seconds: number;
}
