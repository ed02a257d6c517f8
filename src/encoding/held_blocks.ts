import { createBlockMemory } from '../source/block_memory.ts';
import type { CopiedBlocks } from '../source/source.ts';
import { readPage } from '../source/page_reader.ts';
import {
  connectToSource,
  type SourceConnectionOptions,
  type SourceConnections,
} from '../source/source_connection.ts';
import type { BlockOfThread, ReadTask } from './thread_messages.ts';

/** The blocks that a thread has read and holds. */
export interface HeldBlocks {
  /** Reads a page and holds its blocks. @throws as `readPage` */
  read(task: ReadTask, signal: AbortSignal): Promise<CopiedBlocks<BlockOfThread>>;
  /** A block that is held. */
  get(held: number): Buffer;
  /** Releases a block. Its memory is used for another one. */
  drop(held: number): void;
}

/** @param unusedBlockBytes how much unused memory is kept for the next blocks */
export function holdBlocks(unusedBlockBytes: number): HeldBlocks {
  const memory = createBlockMemory(unusedBlockBytes);
  const blocks = new Map<number, Buffer>();
  const connections = new Map<string, SourceConnections>();
  let lastHeld = 0;

  /** Connections are opened with the first page of a source, which in exportd is the only one. */
  const connectionsTo = (source: SourceConnectionOptions): SourceConnections => {
    const key = JSON.stringify(source);
    const open = connections.get(key) ?? connectToSource(source);
    connections.set(key, open);
    return open;
  };

  return {
    async read({ source, page }, signal) {
      const copied = await readPage(connectionsTo(source), page, signal, memory);
      const held = copied.blocks.map(({ block, ...described }) => {
        lastHeld += 1;
        blocks.set(lastHeld, block);
        return { ...described, bytes: block.length, held: lastHeld };
      });
      return { ...copied, blocks: held };
    },
    get(held) {
      const block = blocks.get(held);
      if (!block) throw new RangeError('A block was encoded after its thread released it.');
      return block;
    },
    drop(held) {
      const block = blocks.get(held);
      blocks.delete(held);
      if (block) memory.give(block);
    },
  };
}
