import type { BarrierState, UnsettledBarrier } from '../domain/barrier.ts';
import type { Model } from '../domain/batch_export.ts';
import type { Fingerprint } from '../domain/fingerprint.ts';
import type { DataInterval } from '../domain/intervals.ts';
import type { RowOfKey, SortKey } from '../domain/sort_key.ts';
import type { ListedMapping, SourceReport } from './check/report.ts';
import type { ExportedColumn, RowSelection } from './row_selection.ts';
import type { SourceConnectionOptions } from './source_connection.ts';

/** The selected rows of one model of one project in an interval of insertion time, `[start, end)`. */
export interface RowRange {
  readonly model: Model;
  readonly team_id: number;
  readonly interval: DataInterval;
  readonly selection: RowSelection;
}

/** A key range: the rows after `after`, up to and including `until`; null is unbounded. */
export interface KeyBounds {
  readonly after: SortKey | null;
  readonly until: SortKey | null;
}

/** The sort key of a row, and of persons which state of the distinct id it is. */
export interface RowKey extends SortKey {
  /** The versions of its mapping and of its person, such as `3/7`; undefined if they are unknown. */
  readonly version?: string | undefined;
}

/** How the rows of a block are fingerprinted: the columns are given by their indexes. */
export interface FingerprintPlan extends Pick<Fingerprint, 'hash' | 'width_ms'> {
  /** Start of the first bucket (ISO 8601). */
  readonly origin: string;
  readonly inserted_at: number;
  readonly id: number;
}

/**
 * Consecutive rows in the order `(inserted_at, id)`. A block ends between rows with equal keys only if they need more than a
 * page; then `last` says which of them it is. Several blocks make a page, which is read in one short transaction. `block` is the only user of its buffer, so the buffer can be
 * transferred to a thread.
 * `block` contains binary COPY tuples without COPY's header and trailer. A tuple is the number of fields (int16),
 * then for each field its length (int32, -1 for null) and its bytes. A `json` field may be jsonb: its version byte 1,
 * with which no JSON text starts, precedes the text.
 */
export interface RowBlock {
  readonly columns: readonly ExportedColumn[];
  readonly block: Buffer;
  readonly rows: number;
  readonly first: SortKey;
  readonly last: SortKey;
  readonly fingerprint: FingerprintPlan;
}

/** A block of one COPY, which does not know its interval. */
export type CopiedBlock = Omit<RowBlock, 'fingerprint'>;

/** The blocks of one COPY. */
export interface CopiedBlocks<Block = CopiedBlock> {
  readonly blocks: Block[];
  readonly rows: number;
  readonly bytes: number;
  /** Whether `maxBytes` ended the COPY, so that more rows may follow. */
  readonly truncated: boolean;
  /** The first key, if its rows need more than `maxBytes`. Then there are no blocks. */
  readonly wideKey?: SortKey;
}

/** The statement of a page and what its rows look like. Plain data, so that another thread can read it. */
export interface PageRequest {
  readonly select: string;
  /** The settings of its transaction. */
  readonly settings: Readonly<Record<string, string>>;
  readonly columns: readonly ExportedColumn[];
  /** Indexes of the sort key columns. */
  readonly key: { readonly inserted_at: number; readonly id: number };
  /** Where the rows of one key are read: the row after which they start. The statement returns the hash of each after its columns. */
  readonly within?: RowOfKey;
  readonly blockBytes: number;
  readonly maxBytes: number;
  /** A wider row loses its long values, and cannot be encoded. */
  readonly maxRowBytes: number;
}

/** A block whose rows another thread has read and holds, for encoding. */
export interface HeldBlock extends Omit<RowBlock, 'block'> {
  /** The bytes of its rows. */
  readonly bytes: number;
  /** The number of the thread, and of the block in it. */
  readonly thread: number;
  readonly held: number;
}

/** A block of a page that a thread holds, which does not know its interval. */
export type HeldPageBlock = Omit<HeldBlock, 'fingerprint'>;

/** Threads that read pages over connections of their own, and hold the blocks until they are encoded or dropped. */
export interface PageThreads {
  /**
   * Reads a page completely. An abort cancels the statement in PostgreSQL.
   * @throws as `SourceConnections.read`; EncoderThreadExited (of src/encoding) when the thread ended
   */
  readPage(
    source: SourceConnectionOptions,
    page: PageRequest,
    signal: AbortSignal,
  ): Promise<CopiedBlocks<HeldPageBlock>>;
  /** Releases a block that is not encoded. */
  drop(block: Pick<HeldBlock, 'thread' | 'held' | 'bytes'>): void;
}

/** The memory budget of rows, shared by all readers of a process. */
export interface RowMemory {
  /** Waits until `bytes` can be reserved. Rejects with the signal's reason when it is aborted. */
  reserveRows(bytes: number, signal: AbortSignal): Promise<void>;
  /** Releases reserved bytes; a negative number reserves more without waiting. */
  releaseRows(bytes: number): void;
}

/** Options for reading blocks. */
export interface ReadOptions {
  readonly blockBytes: number;
  readonly signal: AbortSignal;
  /**
   * Reserves the memory of each page before it is read. The caller releases the bytes of every block that it
   * received. Without it, pages are read ahead without a limit.
   */
  readonly memory?: RowMemory;
  /**
   * Whether a row that PostgreSQL cannot read is read without the values at fault, in whose place are marks (`replacedValue`).
   * By default reading fails with InvalidSourceValue, which names it.
   */
  readonly replacesBadValues?: boolean;
}

/** How a sample is read. */
export interface SampleOptions {
  /** About how many rows are read; fewer when they are large. */
  readonly rows: number;
  /** Whether PostgreSQL cuts long values: then rows of any width are read. A text that was cut ends with an ellipsis. */
  readonly cutsValues?: boolean;
  readonly signal?: AbortSignal;
}

/** The result of one barrier check: the new state, and the wait before the next check (0 when it is open). */
export interface BarrierCheck {
  readonly state: BarrierState;
  readonly wait_ms: number;
  /** Descriptions of what blocks it, for the log of the export. */
  readonly blocked_by: readonly string[];
  /**
   * Why rows may appear that no transaction of the server shows, such as those of a foreign table: parts of sentences. An open
   * barrier then proves nothing.
   */
  readonly unseen?: readonly string[];
}

/** Rows of a project that no interval contains, or none before long. */
export interface StrayRows {
  readonly relation: string;
  /** The column that decides which interval a row belongs to. */
  readonly column: string;
  /** Rows whose time is infinite, counted up to 10,001. */
  readonly infinite: number;
  /** Rows whose time is more than a day ahead of the clock, counted up to 10,001. */
  readonly ahead: number;
}

/** The database that exportd reads: rows of projects, and open transactions that may add rows to an interval. */
export interface Source {
  /** The columns of a selection's files: those of its query, else those of the model. */
  columns(model: Model, selection?: Pick<RowSelection, 'query'>): readonly ExportedColumn[];
  /**
   * Checks once whether every transaction that may add rows below `cutoff` (ISO 8601) has ended. Never waits. Start
   * with `{ phase: 'settling' }` and pass the returned state to the next call. Rejects with the signal's reason when it is
   * aborted.
   */
  checkBarrier(cutoff: string, state: BarrierState, signal?: AbortSignal): Promise<BarrierCheck>;
  /** Checks many blocked barriers at once, with the same few statements as one. Returns the checks in their order. */
  checkBarriers(states: readonly UnsettledBarrier[]): Promise<readonly BarrierCheck[]>;
  /** Counts the current rows of the range. Rejects with the signal's reason when it is aborted. */
  countRows(range: RowRange, signal?: AbortSignal): Promise<number>;
  /** Rows of the range's project that no interval contains, whatever the range is, as of the last minute. Reads an index. */
  strayRows(range: Pick<RowRange, 'model' | 'team_id'>, signal?: AbortSignal): Promise<readonly StrayRows[]>;
  /**
   * Returns which rows the range has now, by bucket of insertion time. Where the selection depends on the current state
   * of persons, it is the fingerprint of all events of the project in the interval, and `all_events` is set.
   * Rejects with the signal's reason when it is aborted.
   * @throws FingerprintHashDiffers
   */
  fingerprint(range: RowRange, signal?: AbortSignal): Promise<Fingerprint>;
  /**
   * The same for adjacent intervals of equal length, in order, with one statement. Of persons each distinct id is hashed
   * together with the time and the versions of its state (`of_states`), so that equal fingerprints are of equal states.
   */
  fingerprints(
    range: Omit<RowRange, 'interval'>,
    intervals: readonly DataInterval[],
    signal?: AbortSignal,
  ): Promise<readonly Fingerprint[]>;
  /**
   * Reads the sort keys of the selected rows of a range in order, page by page. Rejects with the signal's reason when it
   * is aborted.
   */
  keys(range: RowRange, signal: AbortSignal): AsyncGenerator<RowKey>;
  /**
   * Keys that split a range into key ranges of `every` rows; the last one may be shorter. Each key is the `until` of
   * one key range and the `after` of the next. Empty for a range of at most `every` rows.
   */
  splitKeys(range: RowRange, every: number, signal?: AbortSignal): Promise<readonly SortKey[]>;
  /**
   * Reads the rows of a key range in order, in blocks of about `blockBytes`; a larger row gets its own block. No
   * transaction is open while the caller processes a block. An abort cancels the running statement in PostgreSQL and
   * ends the generator with the signal's reason.
   */
  blocks(range: RowRange, bounds: KeyBounds, options: ReadOptions): AsyncGenerator<RowBlock>;
  /** The same, read by threads that hold the blocks. The caller encodes or drops every block that it receives. */
  heldBlocks(
    range: RowRange,
    bounds: KeyBounds,
    options: ReadOptions & { readonly threads: PageThreads },
  ): AsyncGenerator<HeldBlock>;
  /**
   * Reads first rows of a range; null when it has none. The block is the only user of its buffer.
   * @throws RowTooWide for a row whose values are not cut
   */
  sample(range: RowRange, options: SampleOptions): Promise<RowBlock | null>;
  /** Compares the relations with what exports of a model need. `teamId` asks; it changes nothing. */
  check(
    teamId: number,
    options: { readonly model: Model; readonly table?: string | undefined },
    signal?: AbortSignal,
  ): Promise<SourceReport>;
  /**
   * Maps a table to events, for the project `teamId` if it has no column for it. The first rows may be of any project.
   * @throws InvalidMapping
   */
  map(
    teamId: number,
    options: {
      readonly table?: string | undefined;
      readonly chosen?: Readonly<Record<string, string>> | undefined;
    },
    signal?: AbortSignal,
  ): Promise<ListedMapping>;
  close(): Promise<void>;
}

/** Finds rows of the source by their id, for people. */
export interface RowFinder {
  /**
   * The sort key of the selected event with this uuid in a range; null if the range has none. It reads the index of the
   * range. Rejects with the signal's reason when it is aborted.
   */
  findEventKey(range: RowRange, uuid: string, signal?: AbortSignal): Promise<SortKey | null>;
}
