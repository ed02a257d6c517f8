import type { Connection } from '../journal/database.ts';
import type { FoldedState } from '../journal/projector.ts';
import type { StoredEvent } from '../journal/stored_event.ts';

/** A read model: tables that the journal alone fills, and how each event changes them. */
export interface Projection {
  readonly name: string;
  /** Raised with every change of `tables` or of the fold; a deployment that finds another number folds again. */
  readonly version: number;
  /** The tables it owns, with their schema, for dropping. */
  readonly owns: readonly string[];
  /** Statements that create them. */
  readonly tables: string;
  /**
   * Folds one event, inside the transaction that appends it. Events of other streams are none of its business. `folded`
   * is the state of the event's stream with this event, where the append knows it already.
   */
  readonly apply: (connection: Connection, event: StoredEvent, folded?: FoldedState) => Promise<void>;
}
