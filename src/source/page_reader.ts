import { copyOut } from './copy_out.ts';
import { newMemory, type BlockMemory } from './block_memory.ts';
import type { CopiedBlock, CopiedBlocks, PageRequest } from './source.ts';
import type { SourceConnections } from './source_connection.ts';

export type { PageRequest } from './source.ts';

/** Reads pages: in this thread, or in another one that holds the blocks. */
export interface PageReader<Block> {
  /** Reads a page completely, in a short transaction. @throws as `SourceConnections.read` */
  read(page: PageRequest, signal: AbortSignal): Promise<CopiedBlocks<Block>>;
  /** The bytes of a block's rows. */
  bytesOf(block: Block): number;
  /** Releases a block that nobody encodes. */
  drop(block: Block): void;
}

/** Reads a page over a connection. */
export const readPage = (
  connections: Pick<SourceConnections, 'read'>,
  { select, settings, columns, key, blockBytes, maxBytes }: PageRequest,
  signal: AbortSignal,
  memory: BlockMemory = newMemory,
): Promise<CopiedBlocks> =>
  connections.read(settings, signal, ({ connection, cancel }) =>
    copyOut(connection, select, { columns, key }, { blockBytes, maxBytes, onFull: cancel }, memory),
  );

/** Reads pages in this thread. */
export const localPageReader = (connections: Pick<SourceConnections, 'read'>): PageReader<CopiedBlock> => ({
  read: (page, signal) => readPage(connections, page, signal),
  bytesOf: ({ block }) => block.length,
  drop: () => undefined,
});
