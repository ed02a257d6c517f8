import type { HeldBlock, RowBlock } from '../source/source.ts';
import type { BlockGrouping, EncodedBlock, FileEncoder } from './encoder.ts';
import type { MemoryReservation } from './memory.ts';

/** An encoded block whose memory is reserved. */
export interface ReservedBlock {
  readonly block: EncodedBlock;
  /** Releases the reservation. Call it when the block's bytes are no longer needed. */
  readonly release: () => void;
}

/** Dependencies for encoding a key range. */
interface EncodingContext {
  readonly encoder: Pick<FileEncoder, 'encode'>;
  /** The reservation that holds the bytes of the blocks. */
  readonly memory: MemoryReservation;
  /** Maximum number of blocks that are being encoded or waiting to be consumed. */
  readonly blocksInFlight: number;
  /** Receives how long the caller waited for the next block: for its rows, or for the encoder. */
  readonly onWait?: (waitedFor: 'read' | 'encode', seconds: number) => void;
}

/**
 * Encodes blocks in the encoder threads and yields them in row order. Encoding runs in the background while the
 * caller processes blocks, until `blocksInFlight` blocks are pending. When the caller stops, this also ends `blocks`,
 * and waits for pending blocks.
 */
export async function* encodeBlocks(
  blocks: AsyncGenerator<RowBlock | HeldBlock>,
  { encoder, memory, blocksInFlight, onWait }: EncodingContext,
): AsyncGenerator<ReservedBlock> {
  const pending: Promise<EncodedBlock>[] = [];
  const state = { stopped: false, ended: false };
  let changed = Promise.withResolvers<undefined>();
  const notifyChange = (): void => {
    changed.resolve(undefined);
    changed = Promise.withResolvers();
  };

  const encode = async (rows: RowBlock | HeldBlock): Promise<EncodedBlock> => {
    const bytes = 'block' in rows ? rows.block.length : rows.bytes;
    try {
      const block = await encoder.encode(rows);
      memory.reserveEncoded(block.bytes.length);
      return block;
    } finally {
      memory.releaseRows(bytes);
    }
  };

  const startEncoding = async (): Promise<void> => {
    for await (const rows of blocks) {
      const block = encode(rows);
      // It may never be awaited, when an earlier block fails.
      block.catch(() => undefined);
      pending.push(block);
      notifyChange();
      while (pending.length >= blocksInFlight && !state.stopped) await changed.promise;
      if (state.stopped) return;
    }
  };

  const waitFor = async <Result>(waitedFor: 'read' | 'encode', awaited: Promise<Result>): Promise<Result> => {
    const startedAt = performance.now();
    try {
      return await awaited;
    } finally {
      onWait?.(waitedFor, (performance.now() - startedAt) / 1_000);
    }
  };

  const started = startEncoding().finally(() => {
    state.ended = true;
    notifyChange();
  });
  started.catch(() => undefined);
  try {
    for (;;) {
      const first = pending[0];
      if (first) {
        const block = await waitFor('encode', first);
        void pending.shift();
        notifyChange();
        const { length } = block.bytes;
        yield { block, release: () => memory.releaseEncoded(length) };
      } else if (state.ended) {
        await started;
        return;
      } else await waitFor('read', changed.promise);
    }
  } finally {
    state.stopped = true;
    notifyChange();
    await blocks.return(undefined);
    await Promise.allSettled([started, ...pending]);
  }
}

/**
 * Joins encoded blocks as their grouping says, and earlier when the process exceeds its memory budget. The blocks of a
 * group stay in memory until it is joined.
 */
export async function* joinEncodedBlocks(
  blocks: AsyncGenerator<ReservedBlock>,
  grouping: BlockGrouping,
  memory: Pick<MemoryReservation, 'isOverBudget' | 'reserveEncoded' | 'releaseEncoded'>,
): AsyncGenerator<ReservedBlock> {
  let waiting: ReservedBlock[] = [];

  const join = async (): Promise<ReservedBlock> => {
    const group = waiting;
    waiting = [];
    const block = await grouping.join(group.map((each) => each.block));
    for (const { release } of group) release();
    const { length } = block.bytes;
    memory.reserveEncoded(length);
    return { block, release: () => memory.releaseEncoded(length) };
  };

  for await (const block of blocks) {
    waiting.push(block);
    if (memory.isOverBudget() || grouping.isComplete(waiting.map((each) => each.block))) yield join();
  }
  if (waiting.length > 0) yield join();
}
