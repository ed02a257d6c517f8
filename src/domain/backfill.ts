import { CommandRejected } from './errors.ts';
import type { Decider, Recorded } from './event.ts';
import type { FailureTime } from './failure_time.ts';
import { intervalFrom, type DataInterval, type ScheduleRevision } from './intervals.ts';
import type { RunDefinition, RunStatus } from './run_state.ts';
import type { AutoPause } from './auto_pause.ts';

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
  if (state.status !== 'Running') return undefined;
  if (new Date(state.created_until) >= new Date(state.spec.last_end)) return undefined;
  const { total_runs, first_start, last_end } = state.spec;
  if (total_runs === 1) return { start: first_start, end: last_end };
  return intervalFrom(state.spec.revisions, new Date(state.created_until));
}

/** Completes a backfill when all of its runs have ended. */
export function decideCompletion(state: BackfillState): BackfillEvent[] {
  if (state.status !== 'Running' || state.active.length > 0) return [];
  const done = new Date(state.created_until) >= new Date(state.spec.last_end);
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
