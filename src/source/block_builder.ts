import { newMemory, type BlockMemory } from './block_memory.ts';
import type { CopyDataSink } from './copy_data_tap.ts';
import type { ModelQuery } from './model_query.ts';
import { sameKey, sortKeyAt } from './sort_key.ts';
import type { CopiedBlock, CopiedBlocks } from './source.ts';

export type { CopiedBlock, CopiedBlocks } from './source.ts';

/** Limits of the blocks of one COPY. */
export interface BlockLimits {
  /** Size of a block in bytes. */
  readonly blockBytes: number;
  /**
   * Size of all blocks in bytes. When it is reached, only rows with the same key as the last one are added. The first
   * row is always added.
   */
  readonly maxBytes: number;
  /** Called once when `maxBytes` is reached. Rows that arrive later are dropped. */
  readonly onFull: () => void;
}

/** Collects the tuples of a binary COPY in blocks. */
export interface BlockBuilder extends CopyDataSink {
  /** Returns the blocks after the COPY has ended. @throws MissingSortKey */
  finish(): CopiedBlocks;
}

/** Signature, flags and extension length. The extension is always empty. */
const headerLength = 19;
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
}

/**
 * Collects the tuples of one COPY in blocks. PostgreSQL sends one tuple per message, with the header in front of the
 * first tuple and the trailer in the last message. Each tuple is copied once, directly into its block. A tuple that
 * shares its key with the last one of a full block is copied again, because a block never ends between equal keys.
 */
export function createBlockBuilder(
  query: Pick<ModelQuery, 'columns' | 'key'>,
  bounds: BlockLimits,
  memory: BlockMemory = newMemory,
): BlockBuilder {
  const finished: TupleBuffer[] = [];
  let bytes = 0;
  let rows = 0;
  let truncated = false;
  let headerLeft = headerLength;
  let current: TupleBuffer | undefined;
  /** The block that receives the current tuple: `current`, or a new one when the tuple does not fit. */
  let target: TupleBuffer = noTuples();
  let at = 0;

  const startTuple = (size: number): void => {
    const fits = current !== undefined && current.length + size <= current.limit;
    target = fits && current ? current : empty(Math.max(size, blockSize()));
    at = target.length;
  };
  /** At most what remains of `maxBytes`, so that the last block wastes little memory. */
  const blockSize = (): number => Math.min(bounds.blockBytes, Math.max(0, bounds.maxBytes - bytes));

  const endTuple = (): void => {
    const size = at - target.length;
    if (size < 2 || target.memory.readInt16BE(target.length) === trailer) {
      dropTarget();
      return;
    }
    const fits = bytes + size <= bounds.maxBytes || !current;
    const continues = current !== undefined && (!fits || target !== current) && sharesKey(current);
    if (!fits && !continues) {
      truncated = true;
      dropTarget();
      bounds.onFull();
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
    current.length += size;
    current.rows += 1;
    bytes += size;
    rows += 1;
  };

  /** Whether the current tuple has the key of the block's last tuple. */
  const sharesKey = (block: TupleBuffer): boolean =>
    sameKey(block.memory, block.lastAt, target.memory, target.length, query);

  /** Appends the current tuple to a block that is too small for it. */
  const appendTo = (block: TupleBuffer, size: number): void => {
    const larger = memory.take(Math.max(block.length + size, Math.ceil(block.memory.length * 1.5)));
    block.memory.copy(larger, 0, 0, block.length);
    target.memory.copy(larger, block.length, target.length, at);
    memory.give(block.memory);
    block.memory = larger;
  };

  /** Gives back a block that received one tuple only, which is not its own. */
  const dropTarget = (): void => {
    if (target !== current) memory.give(target.memory);
  };

  const empty = (size: number): TupleBuffer => ({ ...noTuples(), memory: memory.take(size), limit: size });

  return {
    start: (size) => {
      if (!truncated) startTuple(Math.max(0, size - headerLeft));
    },
    write: (source, start, end) => {
      if (truncated) return;
      const from = Math.min(end, start + headerLeft);
      headerLeft -= from - start;
      source.copy(target.memory, at, from, end);
      at += end - from;
    },
    end: () => {
      if (!truncated) endTuple();
    },
    finish: () => {
      const blocks = [...finished, ...(current ? [current] : [])].map((tuples) =>
        blockOf(tuples, query, memory),
      );
      return { blocks, rows, bytes, truncated };
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
  { memory, length, rows, lastAt }: TupleBuffer,
  query: Pick<ModelQuery, 'columns' | 'key'>,
  { recycled }: BlockMemory,
): CopiedBlock {
  const block = recycled ? memory.subarray(0, length) : trimmed(memory, length);
  return {
    columns: query.columns,
    block,
    rows,
    first: sortKeyAt(block, 0, query),
    last: sortKeyAt(block, lastAt, query),
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
