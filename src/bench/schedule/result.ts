import type { Measurement } from '../result.ts';

/** Distribution of a delay in seconds; null without measurements. */
export interface Delays {
  readonly count: number;
  readonly p50: number | null;
  readonly p99: number | null;
  readonly maximum: number | null;
}

/** Resources of a program during a measurement; null without /proc, or if the benchmark did not start it. */
export interface Usage {
  readonly cpu_seconds: number | null;
  /** Maximum of the samples. Shared pages are divided among the processes that use them. */
  readonly memory_bytes: number | null;
}

/** Resources of all programs. `worker` is exportd's, or that of the no-op workflows. */
export interface StackUsage {
  readonly worker: Usage;
  readonly server: Usage;
  readonly temporal: Usage;
  readonly postgresql: Usage;
}

/** No-op workflows: each schedules one activity, which does nothing, and ends. */
export interface NoopResult {
  readonly workflows: number;
  /** Maximum number of concurrent workflows. */
  readonly concurrency: number;
  readonly seconds: number;
  readonly per_second: number;
  readonly usage: StackUsage;
}

/** Average cost of an execution for Temporal. */
export interface ExecutionCost {
  /** Executions whose histories were read. */
  readonly sampled: number;
  readonly events: number;
  /** See `actionsOf`. */
  readonly actions: number;
}

/** A backfill of intervals without rows. */
export interface BackfillResult {
  readonly intervals: number;
  readonly concurrency: number;
  /** From the command to the event that completes the backfill. */
  readonly seconds: number;
  readonly runs_per_second: number;
  /** Divided by the rate of no-op workflows, the median of the measurements before and after. */
  readonly ratio_to_noop: number;
  /** Divided by the rate of no-op workflows with the concurrency of the backfill. */
  readonly ratio_to_noop_at_same_concurrency: number;
  readonly run: ExecutionCost;
  /** Events of the backfill's workflow per run, over all executions that it continued as. */
  readonly backfill_events_per_run: number;
  readonly backfill_actions_per_run: number;
  /** Statements on the control database; null if the server does not count them. */
  readonly statements_per_run: number | null;
  /** Maximum size of the backfill's folded state in the journal. */
  readonly backfill_state_bytes: number;
  readonly usage: StackUsage;
}

/** Ticks of many exports. An interval is due at its end plus its jitter. */
export interface TicksResult {
  /** Jitter as a fraction of the interval. */
  readonly jitter: number;
  readonly ticks: number;
  readonly expected_runs: number;
  readonly completed_runs: number;
  /** Runs whose manifest is in the bucket. */
  readonly manifests: number;
  readonly runs_with_rows: number;
  /** To the event that created the run. */
  readonly due_to_created: Delays;
  /** To the start of the first workflow task of the run's execution. */
  readonly due_to_first_task: Delays;
  readonly due_to_completed: Delays;
  readonly run: ExecutionCost;
  /** Events of the schedule's workflow per tick. */
  readonly schedule_events_per_run: number;
  readonly schedule_actions_per_run: number;
  readonly statements_per_run: number | null;
  readonly usage: StackUsage;
}

/** Creation of the exports with the HTTP API. */
export interface CreationResult {
  readonly seconds: number;
  readonly per_second: number;
  readonly usage: StackUsage;
}

/** Result of `exportd bench schedule`. Times are in seconds. */
export interface ScheduleBenchResult extends Measurement {
  /** EXPORTD_SETTLE_DELAY. No run can complete earlier after the end of its interval. */
  readonly settle_seconds: number;
  readonly noop: readonly NoopResult[];
  readonly backfill: BackfillResult;
  readonly exports: number;
  readonly interval: string;
  /** Null without exports. */
  readonly creation: CreationResult | null;
  readonly ticks: readonly TicksResult[];
  /** The longest history of all executions. */
  readonly largest_history: { readonly events: number; readonly workflow_id: string };
}
