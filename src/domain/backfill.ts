import {
  type BatchExportEvent,
  type BatchExportState,
  type LiveBatchExport,
  requireLive,
} from './batch_export.ts';
import { CommandRejected, type FailureTime } from './errors.ts';
import type { Decider, Recorded } from './event.ts';
import { countIntervals, type DataInterval, type ScheduleRevision, wholeIntervals } from './intervals.ts';
import type { RunStatus } from './run_state.ts';
import type { AutoPause } from './auto_pause.ts';

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

/** What of a range a backfill exports. */
export interface BackfillScope {
  /** `missing`: only intervals that have no files. */
  readonly only?: 'missing' | undefined;
  /** Whether it also writes intervals anew whose files have the rows of the source. */
  readonly rewrite?: boolean | undefined;
}

/** Requests a backfill of a past range. */
export function decideBackfill(
  state: BatchExportState,
  command: { readonly backfill_id: string; readonly allow_shrink: boolean } & RangeRequest & BackfillScope,
): BatchExportEvent[] {
  requireBackfillRange(requireLive(state), command);
  const { backfill_id, start_at, end_at, allow_shrink, only, rewrite } = command;
  const scope = { ...(only && { only }), ...(rewrite === true && { rewrite }) };
  return [{ type: 'BackfillRequested', data: { backfill_id, start_at, end_at, allow_shrink, ...scope } }];
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
    interval: DataInterval;
    active_run_id: string | null;
  },
): BatchExportEvent[] {
  requireLive(state);
  const { backfill_id, run_id, interval } = command;
  if (command.active_run_id !== null)
    throw new CommandRejected('conflict', `Run ${command.active_run_id} of this interval is still active.`);
  return [{ type: 'RunRetryRequested', data: { backfill_id, run_id, ...interval } }];
}

export type BackfillStatus = 'Running' | 'Paused' | 'Completed' | 'Cancelled';

/** Which intervals a backfill exports. */
export type BackfillPlan =
  /**
   * A range, as the schedule revisions of the request cut it: only the `parts` of it that nothing had exported, if they are given.
   * `rewrites`: also intervals whose files have the rows of the source.
   */
  | {
      readonly kind: 'range';
      readonly range: BackfillRange;
      readonly revisions: readonly ScheduleRevision[];
      readonly parts?: readonly DataInterval[];
      readonly rewrites?: true;
    }
  /** That of a run, once more. */
  | { readonly kind: 'retry'; readonly run_id: string; readonly interval: DataInterval }
  /** Those of a range whose run failed then. `range.intervals` is their number. */
  | { readonly kind: 'failed'; readonly failed: FailureTime; readonly range: BackfillRange }
  /** exportd itself exports intervals again whose manifests lack rows. It ends when its queue is empty. */
  | { readonly kind: 'repair' };

/** The specification of a backfill, fixed at its creation. */
export interface BackfillSpec {
  readonly batch_export_id: string;
  readonly team_id: number;
  /** The requested range. That of a repair begins with its first interval, and grows. */
  readonly start_at: string;
  readonly end_at: string;
  /** Whether its runs may publish fewer rows than the manifests that they replace. */
  readonly allow_shrink: boolean;
  readonly plan: BackfillPlan;
}

/** The time whose intervals a backfill exports; null for a repair. */
export function rangeOfPlan(plan: BackfillPlan): DataInterval | null {
  switch (plan.kind) {
    case 'range':
    case 'failed':
      return { start: plan.range.start, end: plan.range.end };
    case 'retry':
      return plan.interval;
    case 'repair':
      return null;
  }
}

/** How many intervals a backfill exports, as far as its request tells: a repair gets them one by one. */
export function plannedRuns(plan: BackfillPlan): number {
  switch (plan.kind) {
    case 'range':
    case 'failed':
      return plan.range.intervals;
    case 'retry':
      return 1;
    case 'repair':
      return 0;
  }
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

export interface ExistingBackfill {
  readonly status: BackfillStatus;
  readonly spec: BackfillSpec;
  /** The time without runs yet; null once every interval has one. That of a repair is null: its queue has its intervals. */
  readonly remaining: DataInterval | null;
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
      remaining: nonEmpty(rangeOfPlan(event.data.plan)),
      runs_created: 0,
      active: [],
    };
  if (state.status === 'Absent') return state;
  switch (event.type) {
    case 'BackfillRunCreated':
      return {
        ...state,
        remaining: state.remaining && nonEmpty({ ...state.remaining, start: event.data.end }),
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

/** Where the next interval of a backfill of parts may begin: at or after a time; null if none is left. */
export function nextInParts(parts: readonly DataInterval[], start: string): string | null {
  const next = parts.find(({ end }) => Date.parse(end) > Date.parse(start));
  if (!next) return null;
  return Date.parse(next.start) > Date.parse(start) ? next.start : start;
}

const nonEmpty = (time: DataInterval | null): DataInterval | null =>
  time && Date.parse(time.start) < Date.parse(time.end) ? time : null;

/** Completes a backfill when all of its runs have ended. @param hasQueue whether a repair has intervals left */
export function decideCompletion(state: BackfillState, hasQueue: boolean): BackfillEvent[] {
  if (state.status !== 'Running' || state.active.length > 0) return [];
  const isDone = state.spec.plan.kind === 'repair' ? !hasQueue : state.remaining === null;
  return isDone ? [{ type: 'BackfillCompleted', data: {} }] : [];
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
