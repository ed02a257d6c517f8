import type { ExistingRun, RunState } from '../domain/run_state.ts';
import type { FoldedEvent } from '../journal/journal.ts';
import type { CachedTable, RowCache, WantedRows } from './row_cache.ts';

/** A read model: tables that are derived from the journal, and how each event changes them. */
export interface Projection {
  readonly name: string;
  /** Incremented with every change of `tables` or of the fold. A deployment with another version rebuilds the tables. */
  readonly version: number;
  /**
   * The names of the projections whose tables its fold reads, as they are after the same event. A rebuild has them too; without
   * `stream_states`, its events have no state.
   */
  readonly reads: readonly string[];
  /** The schema-qualified names of its tables, in the order to drop them. */
  readonly owns: readonly string[];
  /** The statements that create the tables. */
  readonly tables: string;
  /** Its tables as the fold sees them, in the order to write them. Nothing but the fold changes their rows. */
  readonly cached: readonly CachedTable[];
  /** All rows that folding an event reads: of its own tables, and of those of `reads`. */
  readonly wants: (event: FoldedEvent) => readonly WantedRows[];
  /**
   * Folds an event into the rows, and ignores events of streams that it does not read. An append and a rebuild call it; it is
   * the only definition of the read model.
   */
  readonly fold: (rows: RowCache, event: FoldedEvent) => void;
}

/** A run after an event of its stream. @throws Error when a rebuild has no states, because `reads` lacks them */
export function existingRun(state: RunState | undefined): ExistingRun {
  if (state === undefined || state.status === 'Absent')
    throw new Error('The state of a run is missing. Run "exportd rebuild".');
  return state;
}
