import type { RowBlock } from '../source/source.ts';
import type { MemoryReservation } from './memory_budget.ts';
import type { EncodedBlock, FileEncoder } from './encoder.ts';

/** An encoded block, and the end of its time in memory. */
export interface EncodedInMemory {
  readonly block: EncodedBlock;
  /** To be called when nothing needs the block's bytes any more: it makes room for further rows. */
  readonly release: () => void;
}

/** What encoding a stretch works with. */
export interface EncodingWork {
  readonly encoder: Pick<FileEncoder, 'encode'>;
  /** The account that the blocks' bytes were taken from. */
  readonly memory: MemoryReservation;
  /** How many blocks are in the threads or wait for their turn to be given out. */
  readonly blocksInFlight: number;
}

/**
 * Encodes blocks in the pool's threads and gives them out in the rows' order. It goes on in the background while the
 * caller works, until so many blocks are under way: then it takes no further ones. When the caller stops, the blocks are
 * asked to end too, and what was under way has ended before this does.
 */
export async function* encodeBlocks(
  blocks: AsyncGenerator<RowBlock>,
  { encoder, memory, blocksInFlight }: EncodingWork,
): AsyncGenerator<EncodedInMemory> {
  const underWay: Promise<EncodedBlock>[] = [];
  const state = { stopped: false, ended: false };
  let changed = Promise.withResolvers<undefined>();
  const tellChange = (): void => {
    changed.resolve(undefined);
    changed = Promise.withResolvers();
  };

  const encode = async (rows: RowBlock): Promise<EncodedBlock> => {
    const bytes = rows.block.length;
    try {
      const block = await encoder.encode(rows);
      memory.reserveEncoded(block.bytes.length);
      return block;
    } finally {
      memory.releaseRows(bytes);
    }
  };

  const takeBlocks = async (): Promise<void> => {
    for await (const rows of blocks) {
      const block = encode(rows);
      // Its turn to be awaited may never come when an earlier one fails.
      block.catch(() => undefined);
      underWay.push(block);
      tellChange();
      while (underWay.length >= blocksInFlight && !state.stopped) await changed.promise;
      if (state.stopped) return;
    }
  };

  const taking = takeBlocks().finally(() => {
    state.ended = true;
    tellChange();
  });
  taking.catch(() => undefined);
  try {
    for (;;) {
      const first = underWay[0];
      if (first) {
        const block = await first;
        void underWay.shift();
        tellChange();
        const { length } = block.bytes;
        yield { block, release: () => memory.releaseEncoded(length) };
      } else if (state.ended) {
        await taking;
        return;
      } else await changed.promise;
    }
  } finally {
    state.stopped = true;
    tellChange();
    await blocks.return(undefined);
    await Promise.allSettled([taking, ...underWay]);
  }
}
