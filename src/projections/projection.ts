import type { Connection } from '../journal/database.ts';
import type { FoldedState, StoredEvent } from '../journal/journal.ts';
import type { CachedTable, RowCache, WantedRows } from './row_cache.ts';

/** A read model: tables that are derived from the journal, and how each event changes them. */
export interface Projection {
  readonly name: string;
  /** Incremented with every change of `tables` or of the fold. A deployment with another version rebuilds the tables. */
  readonly version: number;
  /** The names of the projections whose tables its fold reads, as they are after the same event. A rebuild has them too. */
  readonly reads: readonly string[];
  /** The schema-qualified names of its tables, in the order to drop them. */
  readonly owns: readonly string[];
  /** The statements that create the tables. */
  readonly tables: string;
  /**
   * Folds one event, in the transaction that appends it, and ignores events of streams that it does not read. `folded`
   * is the stream's state after this event, if the append knows it.
   */
  readonly apply: (connection: Connection, event: StoredEvent, folded?: FoldedState) => Promise<void>;
  readonly batch: BatchFold;
}

/** The same fold as `apply` for a rebuild: over rows in memory, which are read and written by the thousand. */
interface BatchFold {
  /** Its tables, in the order to write them. */
  readonly tables: readonly CachedTable[];
  /** The rows that folding an event needs. Others are read when they are needed, one by one. */
  readonly wants: (event: FoldedEvent) => readonly WantedRows[];
  /** Folds one event. False: it is rare, so that `apply` folds it. */
  readonly fold: (rows: RowCache, event: FoldedEvent) => Promise<boolean>;
}

/** An event with its stream's state after it; undefined if the rebuild has no states. */
export interface FoldedEvent {
  readonly stored: StoredEvent;
  readonly state: unknown;
}
