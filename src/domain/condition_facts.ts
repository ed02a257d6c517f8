/** What the condition of an export is decided by. */
import type { OpenCircuit } from './circuit.ts';
import type { Coverage } from './coverage.ts';
import type { DataInterval } from './intervals.ts';

/** Intervals that have something in common. */
export interface AffectedIntervals {
  readonly intervals: number;
  /** Since when; null if there are none, or if it is not known. */
  readonly since: string | null;
  /** The newest, newest first. `run_id`: their newest run, where they have one. */
  readonly ranges: readonly (DataInterval & { readonly run_id: string | null })[];
}

/** The same with what the newest run of the newest one ended with. */
export interface FailedIntervals extends AffectedIntervals {
  readonly latest_error: string | null;
}

/** A fault that only the operator can fix, and since when. */
interface OpenOperatorFault {
  readonly type: string;
  readonly message: string;
  readonly opened_at: string;
  readonly incident_id: string;
}

/** What the control database knows of an export. Times are ISO 8601. */
export interface ConditionFacts {
  readonly id: string;
  readonly team_id: number;
  readonly now: string;
  /** Length of an interval, in milliseconds. */
  readonly interval_ms: number;
  /** False if this version cannot read the schedule. */
  readonly is_readable: boolean;
  /** Null unless it is paused. */
  readonly pause: {
    readonly at: string | null;
    /** E-mail address of the user; null if it is not known. */
    readonly by: string | null;
    /** Failed runs in a row after which exportd paused it; null if a person did. */
    readonly failed_runs: number | null;
  } | null;
  /** Whether the schedule will create a run by itself. */
  readonly is_scheduled: boolean;
  /** Runs that have not ended. */
  readonly active_runs: number;
  /** Intervals that wait for their run to be created or to end, of the schedule and of backfills. */
  readonly waiting: number;
  /** Ended intervals of the schedule without manifest or held run. `oldest_end`: when the oldest of them ended. */
  readonly missing: { readonly intervals: number; readonly oldest_end: string | null };
  /**
   * The slots of all workers for exports, while one of its scheduled runs waits for one and none is free; null otherwise. Nothing
   * fails meanwhile.
   */
  readonly taken_slots: { readonly slots: number; readonly workers: number } | null;
  /** The number of workers, while one of its scheduled runs is not counted and none of them has a turn for it; null otherwise. */
  readonly taken_turns: number | null;
  /** When the oldest interval ended that the schedule owes a run; null if it owes none. */
  readonly unstarted_since: string | null;
  /** When any worker has last reported; null if none ever has. */
  readonly worker_seen_at: string | null;
  /** The incident of the absence of workers; null if a server has recorded none. */
  readonly workers_incident: string | null;
  readonly temporal_fault: OpenOperatorFault | null;
  readonly source_fault: OpenOperatorFault | null;
  /** What one of its runs waits for. */
  readonly operator_fault: OpenOperatorFault | null;
  /** `bucket`: its name for people. */
  readonly circuit:
    | (Pick<OpenCircuit, 'error' | 'opened_at'> & { readonly bucket: string; readonly incident_id: string })
    | null;
  /** Intervals whose newest run failed, or was ended by a person. Those of `retrying` have an automatic retry. */
  readonly failed: FailedIntervals & {
    /** Those of them that a person ended, which are retried one by one. */
    readonly ended_by_person: AffectedIntervals;
  };
  readonly retrying: FailedIntervals;
  readonly held: AffectedIntervals;
  /** Intervals whose files differ from the source, by the newest comparison or verification, unless that is kept. */
  readonly differing: AffectedIntervals;
  readonly unsettled: AffectedIntervals;
  /** Why a target of the export, its table, is not what exportd made it, as a run or a check found it; null if none did. */
  readonly target_fault: { readonly message: string; readonly found_at: string } | null;
  readonly coverage: Coverage | null;
  /** Intervals between the first and the last exported one that are neither exported nor owed. */
  readonly holes: AffectedIntervals;
}

/** A worker reports every few seconds. After this time it is missed, so that its absence is named within a minute. */
export const workerSilenceMs = 40_000;
