import type { Decider, Recorded } from './event.ts';
import type { DataInterval } from './intervals.ts';

/** An object that a lock of the bucket keeps, although nothing needs it any more. */
export interface HeldObject {
  readonly object: string;
  /** Why it stays, for users. */
  readonly reason: string;
  /** ISO 8601: when it is deleted, of what object lock keeps. */
  readonly until?: string;
}

/** An interval of an export, and the run that publishes its rows without the erased ones. */
interface ErasedInterval extends DataInterval {
  readonly batch_export_id: string;
}

/** No event has a distinct id: it has the hashes of `erased_ids`. */
export type ErasureEvent =
  | {
      type: 'ErasureRequested';
      data: { team_id: number; user_id: number; id_hashes: readonly string[] };
    }
  /** Files of the interval have rows of the ids. `generation`: the one that is replaced. */
  | {
      type: 'ErasureIntervalFound';
      data: ErasedInterval & { run_id: string; generation: number; rows: number };
    }
  /** `error`: why the interval is as it was; null once its manifest names no file with the rows. */
  | {
      type: 'ErasureIntervalEnded';
      data: ErasedInterval & { run_id: string | null; error: string | null };
    }
  /** The objects that no manifest needs are gone, except those that a lock holds. */
  | {
      type: 'ErasureObjectsRemoved';
      data: { batch_export_id: string; removed: number; held: readonly HeldObject[]; error: string | null };
    }
  /** `certificate`: what was searched, found, rewritten and removed. */
  | { type: 'ErasureEnded'; data: { status: 'Completed' | 'Incomplete'; certificate: object } };

type ErasureState = { readonly status: 'Absent' } | ExistingErasure;

interface ExistingErasure {
  readonly status: 'Running' | 'Completed' | 'Incomplete';
  readonly team_id: number;
  /** ISO 8601. */
  readonly requested_at: string;
  /** The runs that have not ended, with their intervals. */
  readonly rewriting: readonly (ErasedInterval & { readonly run_id: string })[];
  /** The exports whose objects are removed. */
  readonly cleaned: readonly string[];
  /** What could not be erased. */
  readonly faults: number;
}

function evolve(state: ErasureState, event: Recorded<ErasureEvent>): ErasureState {
  if (event.type === 'ErasureRequested')
    return {
      status: 'Running',
      team_id: event.data.team_id,
      requested_at: event.recorded_at,
      rewriting: [],
      cleaned: [],
      faults: 0,
    };
  if (state.status === 'Absent') return state;
  switch (event.type) {
    case 'ErasureIntervalFound': {
      const { batch_export_id, start, end, run_id } = event.data;
      // The run that it replaces has failed.
      const others = state.rewriting.filter(
        (run) => run.batch_export_id !== batch_export_id || run.start !== start || run.end !== end,
      );
      return { ...state, rewriting: [...others, { batch_export_id, start, end, run_id }] };
    }
    case 'ErasureIntervalEnded': {
      const { run_id, error } = event.data;
      return {
        ...state,
        rewriting: state.rewriting.filter((run) => run.run_id !== run_id),
        faults: state.faults + (error === null ? 0 : 1),
      };
    }
    case 'ErasureObjectsRemoved': {
      const { batch_export_id, held, error } = event.data;
      const faults = state.faults + held.length + (error === null ? 0 : 1);
      return { ...state, cleaned: [...state.cleaned, batch_export_id], faults };
    }
    case 'ErasureEnded':
      return { ...state, status: event.data.status };
  }
}

/** Folds the stream of an erasure. */
export const erasureDecider: Decider<ErasureState, ErasureEvent> = {
  streamType: 'erasure',
  initialState: { status: 'Absent' },
  evolve,
};
