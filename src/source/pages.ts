import type { SortKey } from '../domain/run.ts';
import type { GatheredBlocks } from './block_builder.ts';
import { copyOut } from './copy_out.ts';
import { parameterSetting, type ModelQuery, type QueryParameters } from './model_query.ts';
import type { SourceConnections } from './source_connection.ts';
import type { KeyBounds, ReadingOptions, RowBlock, RowMemory, RowRange } from './source.ts';

/** How much one page may hold. */
export interface PageBounds {
  readonly rows: number;
  readonly bytes: number;
}

/** A page that was read, and where the next one begins. */
interface Page {
  readonly blocks: RowBlock[];
  /** The last row's key; null when no rows are left behind the page. */
  readonly next: SortKey | null;
  readonly rowBytes: number;
}

/** Bytes of a row as long as none has been seen: rather large, so that the first page is soon there. */
const assumedRowBytes = 4_096;
/** How much of the byte bound the expected rows fill, so that ordinary variation does not reach the bound. */
const filling = 0.9;

/** The settings that carry a range, its selection and the keys that bound a stretch of it into a statement. */
export function statementSettings(
  query: Pick<ModelQuery, 'settings'>,
  { team_id, interval }: RowRange,
  more: Partial<Record<'after' | 'until', SortKey | null>> & { readonly every?: number } = {},
): Record<string, string> {
  const { after, until, every } = more;
  const values: Partial<QueryParameters> = {
    team_id: String(team_id),
    start: interval.start,
    end: interval.end,
    ...(after && { after_inserted_at: after.inserted_at, after_id: after.id }),
    ...(until && { until_inserted_at: until.inserted_at, until_id: until.id }),
    ...(every !== undefined && { every: String(every) }),
  };
  const parameters: [string, string][] = Object.entries(values).map(([name, value]) => [
    parameterSetting(name as keyof QueryParameters),
    value,
  ]);
  return { ...Object.fromEntries(parameters), ...query.settings };
}

/**
 * Reads a stretch page by page, each whole and in a transaction of its own before the first of its blocks is given out.
 * The next page is read while the blocks of the one before are given out, so that PostgreSQL has work while they are
 * encoded; then it waits, without a transaction.
 *
 * The number of rows asked for follows from the size of the rows before, so that most pages end by themselves close
 * under the byte bound; where rows suddenly grow, the statement is cancelled at the bound and the next page begins
 * after the last row that was taken.
 */
export async function* readPages(
  connections: SourceConnections,
  query: ModelQuery,
  range: RowRange,
  { after, until }: KeyBounds,
  bounds: PageBounds,
  { blockBytes, signal, memory = plentiful }: ReadingOptions,
): AsyncGenerator<RowBlock> {
  const left = new AbortController();
  const reading = AbortSignal.any([signal, left.signal]);

  const readPage = async (from: SortKey | null, rowBytes: number): Promise<Page> => {
    const rows = Math.max(1, Math.min(bounds.rows, Math.floor((bounds.bytes * filling) / rowBytes)));
    const select = query.page(rows, { after: from !== null, until: until !== null });
    const settings = statementSettings(query, range, { after: from, until });
    let taken = Math.ceil(rows * rowBytes);
    await memory.reserveRows(taken, reading);
    try {
      const gathered = await connections.read(settings, reading, ({ connection, cancel }) =>
        copyOut(connection, select, query, { blockBytes, maxBytes: bounds.bytes, onEnough: cancel }),
      );
      taken -= gathered.bytes;
      return pageOf(gathered, rows);
    } finally {
      memory.releaseRows(taken);
    }
  };
  const giveBack = (blocks: readonly RowBlock[]): void => {
    for (const { block } of blocks) memory.releaseRows(block.length);
  };

  let page: Promise<Page> | undefined = readPage(after, assumedRowBytes);
  let current: RowBlock[] = [];
  try {
    while (page) {
      const { blocks, next, rowBytes }: Page = await page;
      current = blocks;
      page = next ? readPage(next, rowBytes) : undefined;
      // It is awaited only when the caller has taken every block.
      page?.catch(() => undefined);
      for (let block = current.shift(); block; block = current.shift()) {
        yield block;
        signal.throwIfAborted();
      }
    }
  } finally {
    left.abort(new Error('The caller needs no more pages.'));
    giveBack(current);
    await page?.then(({ blocks }) => giveBack(blocks)).catch(() => undefined);
  }
}

/** The memory of a caller that has no bounds. */
const plentiful: RowMemory = { reserveRows: () => Promise.resolve(), releaseRows: () => undefined };

const pageOf = ({ blocks, rows, bytes, cut }: GatheredBlocks, asked: number): Page => ({
  blocks,
  next: cut || rows >= asked ? (blocks.at(-1)?.last ?? null) : null,
  rowBytes: Math.max(1, bytes / Math.max(1, rows)),
});
