import type { Model } from '../domain/batch_export.ts';
import type { DataInterval } from '../domain/intervals.ts';
import type { SortKey } from '../domain/run.ts';
import type { ExportedColumn } from './columns.ts';
import type { RowSelection } from './row_selection.ts';

export { fileColumns, type ColumnType, type ExportedColumn } from './columns.ts';

/** Which rows: one model of one project in one interval of insertion time, `[start, end)`, as far as they are selected. */
export interface RowRange {
  readonly model: Model;
  readonly team_id: number;
  readonly interval: DataInterval;
  readonly selection: RowSelection;
}

/** A stretch of a range in key order: the rows behind `after`, up to and with `until`; null for an open end. */
export interface KeyBounds {
  readonly after: SortKey | null;
  readonly until: SortKey | null;
}

/**
 * Neighbouring rows in the order `(inserted_at, id)`, never cut between equal keys; several make a page, which is read
 * whole in one short transaction. The memory of `block` belongs to it alone, so that it can be handed to a thread.
 * `block` holds the binary COPY tuples back to back, without COPY's header and trailer: for
 * each row the number of fields (int16), then for each field its length (int32, -1 for null) and its bytes. A `json` field
 * may be of the type jsonb, whose version byte 1, which no JSON text begins with, then stands in front of the text.
 */
export interface RowBlock {
  readonly columns: readonly ExportedColumn[];
  readonly block: Buffer;
  readonly rows: number;
  readonly first: SortKey;
  readonly last: SortKey;
}

/** Where a reader asks for the memory of the rows it reads, so that all readers of a process share what there is. */
export interface RowMemory {
  /** Waits until so many bytes may be read. Rejects with the signal's reason when it is aborted. */
  reserveRows(bytes: number, signal: AbortSignal): Promise<void>;
  /** They are gone, or were fewer; a negative number says that they were more. */
  releaseRows(bytes: number): void;
}

/** How blocks are read. */
export interface ReadingOptions {
  readonly blockBytes: number;
  readonly signal: AbortSignal;
  /**
   * Pages are taken from it before they are read; the caller gives back the bytes of every block that it was given.
   * Without, a page is read ahead whatever there is.
   */
  readonly memory?: RowMemory;
}

/** How far the wait for the source's open transactions has come; travels through a run workflow's history. */
export type BarrierState =
  /** `looked`: that the cut has not settled was seen before. */
  | { readonly phase: 'settling'; readonly checked?: true }
  /** `blockers` are virtual transactions that were open when the list was taken. */
  | { readonly phase: 'transactions'; readonly blockers: readonly string[] }
  /** `blockers` are prepared transactions that were listed after the others had ended. */
  | { readonly phase: 'prepared'; readonly blockers: readonly string[] }
  /** The source is a standby that has not replayed its primary's log up to `position` yet. */
  | { readonly phase: 'replaying'; readonly position: string }
  | { readonly phase: 'open' };

/** One look at the barrier: where it stands now and how long to wait before the next look (0 when it is open). */
export interface BarrierCheck {
  readonly state: BarrierState;
  readonly wait_ms: number;
  /** Who holds it, in words for the export's log; empty when nobody does. */
  readonly blocked_by: readonly string[];
}

/** What exportd reads: the rows of the projects, and the transactions that may still add to an interval. */
export interface Source {
  /** The columns of a selection's files: those that its query chooses, else the model's. */
  columns(model: Model, selection?: Pick<RowSelection, 'query'>): readonly ExportedColumn[];
  /**
   * Looks once whether every transaction that could still add rows below `cut` (ISO 8601) has ended; never waits
   * inside. Start with `{ phase: 'settling' }` and pass each answer's state to the next call.
   */
  checkBarrier(cutoff: string, state: BarrierState): Promise<BarrierCheck>;
  /** Rows of the range as of now. Rejects with the signal's reason when it is aborted. */
  countRows(range: RowRange, signal?: AbortSignal): Promise<number>;
  /**
   * Keys that cut a range into stretches of `every` rows, the last one shorter; each is the `until` of one stretch and
   * the `after` of the next. None for a range of at most `every` rows.
   */
  splitKeys(range: RowRange, every: number, signal?: AbortSignal): Promise<readonly SortKey[]>;
  /**
   * The rows of a stretch in order, in blocks of about `blockBytes` (a row that is larger makes a block of its own). No
   * transaction is open while the caller works. An abort cancels the running statement in PostgreSQL and ends the
   * generator with the signal's reason.
   */
  blocks(range: RowRange, bounds: KeyBounds, options: ReadingOptions): AsyncGenerator<RowBlock>;
  close(): Promise<void>;
}
