import type pg from 'pg';
import { type Bound, boundText } from '../config/bounds.ts';
import { beginStatementSpan, failSpan } from '../tracing/spans.ts';
import type { ModelQuery } from './model_query.ts';
import { sameKey, sortKeyAt, endOfTuple } from './binary_tuple.ts';
import type { RowOfKey, SortKey } from '../domain/sort_key.ts';
import type { CopiedBlock, CopiedBlocks } from './source.ts';
import { type NarrowedTuple, narrowTuple } from './replaced_values.ts';
import { type CopyDataSink, tapCopyData } from './copy_data.ts';

/** Memory of blocks. A block that is taken has at least the wanted size. */
export interface BlockMemory {
  take(size: number): Buffer;
  /** Gives a block back; nothing may use it afterwards. */
  give(memory: Buffer): void;
  /** Whether a block may keep memory that it does not use, because the memory is used again. */
  readonly recycled: boolean;
}

/** New memory for each block, left to the garbage collector or transferred to another thread. */
export const newMemory: BlockMemory = {
  take: (size) => Buffer.allocUnsafeSlow(size),
  give: () => undefined,
  recycled: false,
};

/** How much larger than wanted a recycled block may be. */
const maxExcess = 2;
/** How long unused memory is kept, in milliseconds: from one page to the next, not from one export to the next. */
const keptMs = 2_000;

/**
 * Memory that is used for one block after another, up to `limit` unused bytes. New memory costs a page fault for every
 * 4 KiB, and makes the garbage collector run, as it counts as growth.
 */
export function createBlockMemory(limit: number): BlockMemory {
  const free: Buffer[] = [];
  let freeBytes = 0;
  let release: NodeJS.Timeout | undefined;

  const releaseAll = (): void => {
    for (const memory of free.splice(0)) releaseBuffer(memory);
    freeBytes = 0;
  };

  return {
    recycled: true,
    take(size) {
      // The last one given is the most likely to be in the CPU's cache.
      const index = free.findLastIndex(
        (memory) => memory.length >= size && memory.length <= Math.max(1, size) * maxExcess,
      );
      const [memory] = index < 0 ? [] : free.splice(index, 1);
      if (!memory) return Buffer.allocUnsafeSlow(size);
      freeBytes -= memory.length;
      return memory;
    },
    give(memory) {
      const whole = Buffer.from(memory.buffer as ArrayBuffer);
      if (freeBytes + whole.length > limit) {
        releaseBuffer(whole);
        return;
      }
      free.push(whole);
      freeBytes += whole.length;
      release?.refresh();
      release ??= setTimeout(releaseAll, keptMs).unref();
    },
  };
}

/** Releases memory at once. */
function releaseBuffer({ buffer }: Buffer): void {
  if (buffer instanceof ArrayBuffer) buffer.transfer(0);
}

/** A row has more bytes than the reader takes. */
export class RowTooWide extends Error {
  override readonly name = 'RowTooWide';
}

/** Limits of the blocks of one COPY. */
interface BlockLimits {
  /** Size of a block in bytes. */
  readonly blockBytes: number;
  /**
   * Size of all blocks in bytes. Rows end before it, and before a key whose rows do not all fit, unless `endsWithinKey`.
   * The first row is always added.
   */
  readonly maxBytes: number;
  /** Whether the rows of a key may end in any block. */
  readonly endsWithinKey?: boolean;
  /** The row after which those of one key start. Then the last field of each tuple is its hash, which blocks do not have. */
  readonly within?: RowOfKey | undefined;
  /** Called once when `maxBytes` is reached. Rows that arrive later are dropped. */
  readonly onFull: () => void;
  /** A row with more bytes ends the COPY and closes its connection, before the row is received. */
  readonly maxRow?: Bound;
  /** After this time, in milliseconds, the COPY ends with its next row, like at `maxBytes`. */
  readonly enoughMs?: number;
  /** A wider row loses its long values. See `narrowTuple`. */
  readonly maxRowBytes?: number;
}

/** Collects the tuples of a binary COPY in blocks. */
interface BlockBuilder extends CopyDataSink {
  /** Ends the COPY as soon as there is a row. */
  hurry(): void;
  /** Returns the blocks after the COPY has ended. @throws MissingSortKey */
  finish(): CopiedBlocks;
}

/** Signature, flags and extension length. The extension is always empty. */
const headerLength = 19;
/** A hash, and the field with its length. */
const rowHashBytes = 8;
const hashFieldBytes = 4 + rowHashBytes;
/** The field count that marks the end of the tuples. */
const trailer = -1;

/** Consecutive tuples in a buffer of fixed size. */
interface TupleBuffer {
  memory: Buffer;
  /** Offset up to which tuples with a new key are added. */
  readonly limit: number;
  length: number;
  rows: number;
  lastAt: number;
  /** The last row, if the rows are those of one key. */
  lastRow?: RowOfKey;
}

/**
 * Collects the tuples of one COPY in blocks. PostgreSQL sends one tuple per message, with the header in front of the
 * first tuple and the trailer in the last message. Each tuple is copied once, directly into its block. A tuple that
 * shares its key with the last one of a full block is copied again, because a block ends with a key. The rows of a key that
 * goes on behind the page are dropped: the next page starts with them.
 */
function createBlockBuilder(
  query: Pick<ModelQuery, 'columns' | 'key'>,
  bounds: BlockLimits,
  memory: BlockMemory = newMemory,
): BlockBuilder {
  const finished: TupleBuffer[] = [];
  let bytes = 0;
  let rows = 0;
  let truncated = false;
  let isLate = false;
  let headerLeft = headerLength;
  let current: TupleBuffer | undefined;
  /** The block that receives the current tuple: `current`, or a new one when the tuple does not fit. */
  let target: TupleBuffer = noTuples();
  let at = 0;
  /** The current tuple, if it is too wide. */
  let narrowed: NarrowedTuple | undefined;
  /** Whether a row was too wide. It ends the page, because the source may take long to compute and send each of them. */
  let hasWideRow = false;
  const { maxRowBytes = Number.POSITIVE_INFINITY, endsWithinKey = false, within } = bounds;
  let copies = within?.copies ?? 0;
  let hash = within && BigInt(within.row_hash);
  let wideKey: SortKey | undefined;

  const startTuple = (size: number): void => {
    if (bounds.maxRow && size > bounds.maxRow.max)
      throw new RowTooWide(
        `A row has ${(size / 1_048_576).toFixed(1)} MiB; at most ${boundText(bounds.maxRow)} are read.`,
      );
    const fits = current !== undefined && current.length + size <= current.limit;
    target = fits && current ? current : empty(Math.max(size, blockSize()));
    at = target.length;
  };
  /** At most what remains of `maxBytes`, so that the last block wastes little memory. */
  const blockSize = (): number => Math.min(bounds.blockBytes, Math.max(0, bounds.maxBytes - bytes));

  const endTuple = (): void => {
    let size = at - target.length;
    if (size < 2 || target.memory.readInt16BE(target.length) === trailer) {
      dropTarget();
      return;
    }
    const fits = (bytes + size <= bounds.maxBytes && !hasWideRow) || !current;
    const continues =
      current !== undefined && !endsWithinKey && (!fits || target !== current) && sharesKey(current);
    if (!fits) {
      dropTarget();
      if (continues) dropLastKey();
      stop();
      return;
    }
    if (current && target !== current) {
      if (continues) {
        appendTo(current, size);
        dropTarget();
      } else finished.push(current);
    }
    current = current && continues ? current : target;
    current.lastAt = current.length;
    if (within) {
      countCopies(current, target.memory.readBigInt64BE(at - rowHashBytes));
      // Blocks have the columns of the model only.
      current.memory.writeInt16BE(current.memory.readInt16BE(current.lastAt) - 1, current.lastAt);
      size -= hashFieldBytes;
    }
    current.length += size;
    current.rows += 1;
    bytes += size;
    rows += 1;
    if (isLate) stop();
  };

  const stop = (): void => {
    truncated = true;
    bounds.onFull();
  };

  /** Counts the rows with the hash of the tuple that is added. */
  const countCopies = (block: TupleBuffer, next: bigint): void => {
    copies = next === hash ? copies + 1 : 1;
    hash = next;
    block.lastRow = { row_hash: next.toString(), copies };
  };

  /** Removes the rows with the last key. */
  const dropLastKey = (): void => {
    if (!current) return;
    const { memory: rowsOf, lastAt } = current;
    let end = 0;
    let kept = 0;
    let lastKept = 0;
    while (!sameKey(rowsOf, end, rowsOf, lastAt, query)) {
      lastKept = end;
      end = endOfTuple(rowsOf, end);
      kept += 1;
    }
    bytes -= current.length - end;
    rows -= current.rows - kept;
    if (kept > 0) {
      current.length = end;
      current.rows = kept;
      current.lastAt = lastKept;
      return;
    }
    if (finished.length === 0) wideKey = sortKeyAt(rowsOf, lastAt, query);
    memory.give(rowsOf);
    current = finished.pop();
  };

  /** Whether the current tuple has the key of the block's last tuple. */
  const sharesKey = (block: TupleBuffer): boolean =>
    sameKey(block.memory, block.lastAt, target.memory, target.length, query);

  /**
   * Appends the current tuple to a block whose limit it exceeds. The memory grows by half when it is full, so that many rows
   * with one key are copied a few times only.
   */
  const appendTo = (block: TupleBuffer, size: number): void => {
    const needed = block.length + size;
    if (needed > block.memory.length) {
      const larger = memory.take(Math.max(needed, Math.ceil(block.memory.length * 1.5)));
      block.memory.copy(larger, 0, 0, block.length);
      memory.give(block.memory);
      block.memory = larger;
    }
    target.memory.copy(block.memory, block.length, target.length, at);
  };

  /** Gives back a block that received one tuple only, which is not its own. */
  const dropTarget = (): void => {
    if (target !== current) memory.give(target.memory);
  };

  const empty = (size: number): TupleBuffer => ({ ...noTuples(), memory: memory.take(size), limit: size });

  return {
    start: (messageSize) => {
      if (truncated) return;
      const size = Math.max(0, messageSize - headerLeft);
      if (size > maxRowBytes) narrowed = narrowTuple(size, maxRowBytes);
      else startTuple(size);
    },
    write: (source, start, end) => {
      if (truncated) return;
      const from = Math.min(end, start + headerLeft);
      headerLeft -= from - start;
      if (narrowed) narrowed.write(source, from, end);
      else {
        source.copy(target.memory, at, from, end);
        at += end - from;
      }
    },
    end: () => {
      if (truncated) return;
      if (narrowed) {
        const tuple = narrowed.finish();
        narrowed = undefined;
        startTuple(tuple.length);
        at += tuple.copy(target.memory, at);
        endTuple();
        hasWideRow = true;
      } else endTuple();
    },
    hurry: () => {
      isLate = true;
      if (rows > 0 && !truncated) stop();
    },
    finish: () => {
      const blocks = [...finished, ...(current ? [current] : [])].map((tuples) =>
        blockOf(tuples, query, memory),
      );
      return { blocks, rows, bytes, truncated, ...(wideKey && { wideKey }) };
    },
  };
}

const noTuples = (): TupleBuffer => ({
  memory: Buffer.alloc(0),
  limit: 0,
  length: 0,
  rows: 0,
  lastAt: 0,
});

function blockOf(
  { memory, length, rows, lastAt, lastRow }: TupleBuffer,
  query: Pick<ModelQuery, 'columns' | 'key'>,
  { recycled }: BlockMemory,
): CopiedBlock {
  const block = recycled ? memory.subarray(0, length) : trimmed(memory, length);
  return {
    columns: query.columns,
    block,
    rows,
    first: sortKeyAt(block, 0, query),
    last: { ...sortKeyAt(block, lastAt, query), ...(lastRow && { within: lastRow }) },
  };
}

/**
 * The used part. It is copied when much memory would be wasted, because a block is transferred to a thread with its
 * whole buffer.
 */
function trimmed(memory: Buffer, length: number): Buffer {
  if (length >= memory.length * 0.75) return memory.subarray(0, length);
  const block = Buffer.allocUnsafeSlow(length);
  memory.copy(block, 0, 0, length);
  return block;
}

/** The statement that sends the rows of a query. */
export const copyStatement = (select: string): string => `copy (${select}) to stdout (format binary)`;

/** The interface that pg expects of a query object. pg wraps `callback` to clear its own timeout. */
interface CopyQuery extends pg.Submittable {
  callback: (error?: Error | null) => void;
  handleCommandComplete: () => void;
  handleReadyForQuery: () => void;
  handleError: (error: Error) => void;
}

/**
 * Runs `COPY (select) TO STDOUT (FORMAT binary)` and collects its rows in blocks. Cancel the statement in
 * `bounds.onFull`. Rejects with the error of PostgreSQL or of the connection.
 */
export function copyOut(
  connection: pg.PoolClient,
  select: string,
  query: Pick<ModelQuery, 'columns' | 'key'>,
  bounds: BlockLimits,
  memory: BlockMemory = newMemory,
): Promise<CopiedBlocks> {
  return new Promise((resolve, reject) => {
    const builder = createBlockBuilder(query, bounds, memory);
    const text = copyStatement(select);
    const span = beginStatementSpan(text, 'source');
    let restore = (): void => undefined;
    const late =
      bounds.enoughMs === undefined ? undefined : setTimeout(() => builder.hurry(), bounds.enoughMs);

    const end = (error?: Error | null): void => {
      clearTimeout(late);
      restore();
      try {
        const copied = builder.finish();
        // After `onFull` the error is that of the cancellation. The rows received before it are complete.
        if (error && !copied.truncated) {
          if (span) failSpan(span, error);
          reject(error);
        } else resolve(copied);
      } catch (failure) {
        if (span) failSpan(span, failure);
        reject(failure instanceof Error ? failure : new Error(String(failure)));
      } finally {
        span?.end();
      }
    };

    const copy: CopyQuery = {
      callback: end,
      submit: (wire) => {
        restore = tapCopyData(wire.stream, builder);
        wire.query(text);
      },
      handleCommandComplete: () => undefined,
      handleReadyForQuery: () => copy.callback(),
      handleError: (error) => copy.callback(error),
    };
    connection.query(copy);
  });
}
