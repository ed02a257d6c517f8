import type { DataInterval } from '../domain/intervals.ts';
import type { RunDefinition, RunPurpose } from '../domain/run_state.ts';

/** An interval that needs a run, or that has one already. */
export interface NextInterval {
  readonly interval: DataInterval;
  readonly run_id: string | null;
}

/** The next run of a backfill. */
export interface NextRun extends NextInterval {
  readonly purpose: RunPurpose;
  /** The model and config, if not the export's current ones. */
  readonly definition?: RunDefinition | undefined;
  /** Distinguishes it from the other runs of the backfill: the start of its interval, and when a repair was requested. */
  readonly identity: readonly string[];
}
