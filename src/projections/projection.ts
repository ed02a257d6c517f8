import type { HistoryDigest } from '../domain/batch_export.ts';
import type { Connection } from '../journal/database.ts';
import type { FoldedState, StoredEvent } from '../journal/journal.ts';

/** A read model: tables that are derived from the journal, and how each event changes them. */
export interface Projection {
  readonly name: string;
  /** Incremented with every change of `tables` or of the fold. A deployment with another version rebuilds the tables. */
  readonly version: number;
  /** The schema-qualified names of its tables, in the order to drop them. */
  readonly owns: readonly string[];
  /** The statements that create the tables. */
  readonly tables: string;
  /**
   * Folds one event, in the transaction that appends it, and ignores events of streams that it does not read. `folded`
   * is the stream's state after this event, if the append knows it.
   */
  readonly apply: (connection: Connection, event: StoredEvent, folded?: FoldedState) => Promise<void>;
}

/** What an event says is left of old runs and backfills; undefined for any other event. */
export const digestOf = ({ stream_type, type, data }: StoredEvent): HistoryDigest | undefined =>
  stream_type === 'batch_export' && type === 'HistoryCollapsed' ? (data as HistoryDigest) : undefined;
