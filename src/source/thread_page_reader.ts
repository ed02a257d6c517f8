import { inStatementSpan } from '../tracing/statements.ts';
import { copyStatement } from './copy_out.ts';
import type { PageReader } from './page_reader.ts';
import type { HeldPageBlock, PageThreads } from './source.ts';
import type { SourceConnectionOptions } from './source_connection.ts';

/**
 * Reads pages in threads, each over one connection of the share of its project.
 * @param inShare does work that uses a connection of the project's share
 */
export const threadPageReader = (
  threads: PageThreads,
  source: SourceConnectionOptions,
  inShare: <Result>(signal: AbortSignal, work: () => Promise<Result>) => Promise<Result>,
): PageReader<HeldPageBlock> => ({
  read: (page, signal) =>
    inShare(signal, () =>
      inStatementSpan(copyStatement(page.select), 'source', () => threads.readPage(source, page, signal)),
    ),
  bytesOf: ({ bytes }) => bytes,
  drop: (block) => threads.drop(block),
});
