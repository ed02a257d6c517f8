import type { CopyDataSink } from './copy_data_tap.ts';
import type { ModelQuery } from './model_query.ts';
import { sameKey, sortKeyAt } from './sort_key.ts';
import type { RowBlock } from './source.ts';

/** How much is gathered. */
export interface GatherBounds {
  /** Bytes of a block. */
  readonly blockBytes: number;
  /**
   * Bytes of all blocks together, after which no further row is taken but for those that share the last key. The first
   * row is always taken.
   */
  readonly maxBytes: number;
  /** Called once when enough has been taken; what comes afterwards is dropped. */
  readonly onEnough: () => void;
}

/** The blocks of one COPY. */
export interface GatheredBlocks {
  readonly blocks: RowBlock[];
  readonly rows: number;
  readonly bytes: number;
  /** Whether the bound on all bytes ended it, so that there may be more rows. */
  readonly cut: boolean;
}

/** Takes what a COPY in binary sends and gathers its tuples into blocks. */
export interface BlockBuilder extends CopyDataSink {
  /** What was taken, when the COPY has ended. @throws MissingSortKey */
  finish(): GatheredBlocks;
}

/** Signature, flags and length of the header's extension, which has never held anything. */
const headerLength = 19;
/** What stands for the number of fields after the last tuple. */
const trailer = -1;

/** Tuples back to back in memory of a known size. */
interface Tuples {
  memory: Buffer;
  /** Up to where tuples of other keys are taken. */
  readonly limit: number;
  length: number;
  rows: number;
  lastAt: number;
}

/**
 * Gathers the tuples of one COPY. PostgreSQL sends one in each message, the header in front of the first and the trailer
 * in the last. Every tuple is copied once, into the block that it stays in, but for the rare one that shares the key of
 * a block that is full.
 */
export function createBlockBuilder(query: ModelQuery, bounds: GatherBounds): BlockBuilder {
  const full: Tuples[] = [];
  let bytes = 0;
  let rows = 0;
  let cut = false;
  let headerLeft = headerLength;
  let current: Tuples | undefined;
  /** Where the tuple under way goes: the current block, or a new one when it does not fit. */
  let target: Tuples = empty(0);
  let at = 0;

  const beginTuple = (size: number): void => {
    const fits = current !== undefined && current.length + size <= current.limit;
    target = fits && current ? current : empty(Math.max(size, blockSize()));
    at = target.length;
  };
  /** No larger than what is left of all bytes, so that the last block wastes little. */
  const blockSize = (): number => Math.min(bounds.blockBytes, Math.max(0, bounds.maxBytes - bytes));

  const endTuple = (): void => {
    const size = at - target.length;
    if (size < 2 || target.memory.readInt16BE(target.length) === trailer) return;
    const fits = bytes + size <= bounds.maxBytes || !current;
    const continues = current !== undefined && (!fits || target !== current) && sharesKey(current);
    if (!fits && !continues) {
      cut = true;
      bounds.onEnough();
      return;
    }
    if (current && target !== current) {
      if (continues) moveTo(current, size);
      else full.push(current);
    }
    current = current && continues ? current : target;
    current.lastAt = current.length;
    current.length += size;
    current.rows += 1;
    bytes += size;
    rows += 1;
  };

  /** Whether the tuple under way has the key of the block's last one. */
  const sharesKey = (block: Tuples): boolean =>
    sameKey(block.memory, block.lastAt, target.memory, target.length, query);

  /** Copies the tuple under way behind a block that is too small for it. */
  const moveTo = (block: Tuples, size: number): void => {
    const larger = Buffer.allocUnsafeSlow(
      Math.max(block.length + size, Math.ceil(block.memory.length * 1.5)),
    );
    block.memory.copy(larger, 0, 0, block.length);
    target.memory.copy(larger, block.length, target.length, at);
    block.memory = larger;
  };

  return {
    begin: (size) => {
      if (!cut) beginTuple(Math.max(0, size - headerLeft));
    },
    write: (source, start, end) => {
      if (cut) return;
      const from = Math.min(end, start + headerLeft);
      headerLeft -= from - start;
      source.copy(target.memory, at, from, end);
      at += end - from;
    },
    end: () => {
      if (!cut) endTuple();
    },
    finish: () => {
      const blocks = [...full, ...(current ? [current] : [])].map((tuples) => blockOf(tuples, query));
      return { blocks, rows, bytes, cut };
    },
  };
}

const empty = (size: number): Tuples => ({
  memory: Buffer.allocUnsafeSlow(size),
  limit: size,
  length: 0,
  rows: 0,
  lastAt: 0,
});

function blockOf({ memory, length, rows, lastAt }: Tuples, query: ModelQuery): RowBlock {
  const block = trimmed(memory, length);
  return {
    columns: query.columns,
    block,
    rows,
    first: sortKeyAt(block, 0, query),
    last: sortKeyAt(block, lastAt, query),
  };
}

/** The used part; copied where much would be wasted, since memory is handed to a thread as a whole. */
function trimmed(memory: Buffer, length: number): Buffer {
  if (length >= memory.length * 0.75) return memory.subarray(0, length);
  const block = Buffer.allocUnsafeSlow(length);
  memory.copy(block, 0, 0, length);
  return block;
}
