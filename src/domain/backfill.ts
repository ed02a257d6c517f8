import {
  type AutoPause,
  type BatchExportEvent,
  type BatchExportState,
  type LiveBatchExport,
  requireLive,
} from './batch_export.ts';
import { CommandRejected, type FailureTime } from './errors.ts';
import type { Decider, Recorded } from './event.ts';
import {
  countIntervals,
  type DataInterval,
  intervalFrom,
  type ScheduleRevision,
  wholeIntervals,
} from './intervals.ts';
import type { RunDefinition, RunStatus } from './run_state.ts';

/** The whole intervals that a backfill covers: their bounds and their number. */
export interface BackfillRange extends DataInterval {
  readonly intervals: number;
}

/** A requested range of the past, with the current time and the limit on its length. */
interface RangeRequest {
  readonly start_at: string;
  readonly end_at: string;
  readonly now: Date;
  readonly maxIntervals: number;
}

/**
 * Returns the ended intervals that overlap a range, by the schedule revisions that were in force then.
 * @param lengthField the command's field that an error names when the range is too long.
 * @throws CommandRejected when the range is empty, in the future or too long.
 */
export function requireBackfillRange(
  live: LiveBatchExport,
  request: RangeRequest,
  lengthField = 'start_at',
): BackfillRange {
  const { start_at, end_at, now, maxIntervals } = request;
  const start = new Date(start_at);
  const end = new Date(end_at);
  if (start >= end)
    throw new CommandRejected('invalid_input', '`start_at` must be before `end_at`.', 'start_at');
  if (end > now)
    throw new CommandRejected('invalid_input', `\`end_at\` (${end_at}) is in the future.`, 'end_at');
  const range = wholeIntervals(live.revisions, { start, end }, now);
  if (!range)
    throw new CommandRejected('invalid_input', 'No interval in this range has ended yet.', 'end_at');
  const intervals = countIntervals(live.revisions, range, maxIntervals);
  if (intervals > maxIntervals)
    throw new CommandRejected(
      'invalid_input',
      `A backfill covers at most ${maxIntervals} intervals (EXPORTD_MAX_BACKFILL_INTERVALS). Split the range.`,
      lengthField,
    );
  return { ...range, intervals };
}

/** Requests a backfill of a past range. */
export function decideBackfill(
  state: BatchExportState,
  command: { readonly backfill_id: string; readonly allow_shrink: boolean } & RangeRequest,
): BatchExportEvent[] {
  requireBackfillRange(requireLive(state), command);
  const { backfill_id, start_at, end_at, allow_shrink } = command;
  return [{ type: 'BackfillRequested', data: { backfill_id, start_at, end_at, allow_shrink } }];
}

/** Requests another run for each interval whose run failed; nothing if there is none. */
export function decideRetryOfFailed(
  state: BatchExportState,
  command: { readonly backfill_id: string; readonly runs: number } & FailureTime,
): BatchExportEvent[] {
  requireLive(state);
  if (command.runs === 0) return [];
  const { backfill_id, runs, since, until } = command;
  return [{ type: 'FailedRunsRetryRequested', data: { backfill_id, runs, since, until } }];
}

/**
 * Requests another run for the interval of a run.
 * @throws CommandRejected while a run of that interval is active.
 */
export function decideRetry(
  state: BatchExportState,
  command: {
    backfill_id: string;
    run_id: string;
    allow_shrink: boolean;
    interval: DataInterval;
    active_run_id: string | null;
  },
): BatchExportEvent[] {
  requireLive(state);
  const { backfill_id, run_id, allow_shrink, interval } = command;
  if (command.active_run_id !== null)
    throw new CommandRejected('conflict', `Run ${command.active_run_id} of this interval is still active.`);
  return [
    {
      type: 'RunRetryRequested',
      data: { backfill_id, run_id, allow_shrink, ...interval },
    },
  ];
}

export type BackfillStatus = 'Running' | 'Paused' | 'Completed' | 'Cancelled';

/** The specification of a backfill, fixed at its creation together with the schedule revisions of its range. */
export interface BackfillSpec {
  readonly batch_export_id: string;
  readonly team_id: number;
  /** The requested range. */
  readonly start_at: string;
  readonly end_at: string;
  /** The bounds of the whole intervals within the range: first start and last end. Equal if there are none. */
  readonly first_start: string;
  readonly last_end: string;
  readonly total_runs: number;
  readonly revisions: readonly ScheduleRevision[];
  /** The run that this backfill retries, or null. */
  readonly retry_of_run_id: string | null;
  /** Whether its runs may publish fewer rows than the manifests that they replace. */
  readonly allow_shrink: boolean;
  /** The model and config of its runs, if not the export's current ones. */
  readonly definition?: RunDefinition;
  /** If set, it exports only the intervals of its range whose run failed then; `total_runs` is their number. */
  readonly failed_runs?: FailureTime;
  /**
   * Set for the repair of an export: exportd itself exports intervals again whose manifests lack rows. It has a queue instead
   * of a range, and ends when that is empty.
   */
  readonly is_repair?: true;
}

export type BackfillEvent =
  | { type: 'BackfillStarted'; data: BackfillSpec }
  /** `own` is false if the interval already had an active run, which the backfill waits for instead of creating one. */
  | { type: 'BackfillRunCreated'; data: { run_id: string; own: boolean } & DataInterval }
  | { type: 'BackfillRunEnded'; data: { run_id: string; status: RunStatus } }
  /** The run continued as new; the backfill now waits for `next_run_id`. */
  | { type: 'BackfillRunContinued'; data: { run_id: string; next_run_id: string } }
  | { type: 'BackfillPaused'; data: Partial<AutoPause> }
  | { type: 'BackfillUnpaused'; data: Record<string, never> }
  | { type: 'BackfillCancelled'; data: { reason: string } }
  | { type: 'BackfillCompleted'; data: Record<string, never> };

export type BackfillState = { readonly status: 'Absent' } | ExistingBackfill;

interface ExistingBackfill {
  readonly status: BackfillStatus;
  readonly spec: BackfillSpec;
  /** Every interval up to this boundary has a run. */
  readonly created_until: string;
  /** The number of those intervals. */
  readonly runs_created: number;
  /** Runs that the backfill created or waits for and that have not ended. */
  readonly active: readonly string[];
}

/** Folds a backfill's stream. */
export const backfillDecider: Decider<BackfillState, BackfillEvent> = {
  streamType: 'backfill',
  initialState: { status: 'Absent' },
  evolve,
};

function evolve(state: BackfillState, event: Recorded<BackfillEvent>): BackfillState {
  if (event.type === 'BackfillStarted')
    return {
      status: 'Running',
      spec: event.data,
      created_until: event.data.first_start,
      runs_created: 0,
      active: [],
    };
  if (state.status === 'Absent') return state;
  switch (event.type) {
    case 'BackfillRunCreated':
      return {
        ...state,
        created_until: event.data.end,
        runs_created: state.runs_created + 1,
        active: [...state.active, event.data.run_id],
      };
    case 'BackfillRunEnded':
      return { ...state, active: state.active.filter((id) => id !== event.data.run_id) };
    case 'BackfillRunContinued':
      return {
        ...state,
        active: state.active.map((id) => (id === event.data.run_id ? event.data.next_run_id : id)),
      };
    case 'BackfillPaused':
      return { ...state, status: 'Paused' };
    case 'BackfillUnpaused':
      return { ...state, status: 'Running' };
    case 'BackfillCancelled':
      return { ...state, status: 'Cancelled' };
    case 'BackfillCompleted':
      return { ...state, status: 'Completed' };
  }
}

/**
 * The next interval that needs a run; undefined if there is none left or the backfill is not Running. Which intervals of a
 * backfill of failed runs need one is read from the runs.
 */
export function nextBackfillInterval(state: BackfillState): DataInterval | undefined {
  if (state.status !== 'Running' || state.spec.is_repair) return undefined;
  if (new Date(state.created_until) >= new Date(state.spec.last_end)) return undefined;
  const { total_runs, first_start, last_end } = state.spec;
  if (total_runs === 1) return { start: first_start, end: last_end };
  return intervalFrom(state.spec.revisions, new Date(state.created_until));
}

/** Completes a backfill when all of its runs have ended. @param hasQueue whether a repair has intervals left */
export function decideCompletion(state: BackfillState, hasQueue: boolean): BackfillEvent[] {
  if (state.status !== 'Running' || state.active.length > 0) return [];
  const done = state.spec.is_repair
    ? !hasQueue
    : new Date(state.created_until) >= new Date(state.spec.last_end);
  return done ? [{ type: 'BackfillCompleted', data: {} }] : [];
}

/**
 * Pauses, unpauses or cancels a backfill. Returns no event if it already has the requested status.
 * @throws CommandRejected when it has ended; also when it is cancelled again.
 */
export function decideBackfillControl(
  state: BackfillState,
  command: 'pause' | 'unpause' | 'cancel',
  reason = 'Cancelled by a user.',
): BackfillEvent[] {
  if (state.status === 'Absent') throw new CommandRejected('not_found', 'Not found.');
  if (state.status === 'Completed' || state.status === 'Cancelled')
    throw new CommandRejected(
      command === 'cancel' ? 'invalid_input' : 'conflict',
      `Cannot ${command} a backfill that is in '${state.status}' status.`,
    );
  if (command === 'cancel') return [{ type: 'BackfillCancelled', data: { reason } }];
  if (command === 'pause') return state.status === 'Paused' ? [] : [{ type: 'BackfillPaused', data: {} }];
  return state.status === 'Running' ? [] : [{ type: 'BackfillUnpaused', data: {} }];
}
