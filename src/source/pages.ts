import type { SortKey } from '../domain/exported_files.ts';
import { bucketWidthMs } from '../domain/fingerprint.ts';
import { inStatementSpan } from '../tracing/spans.ts';
import { type BlockMemory, copyOut, copyStatement, newMemory } from './copy_out.ts';
import { type ModelQuery, parameterSetting, type QueryParameters } from './model_query.ts';
import type { RowSelection } from './row_selection.ts';
import type {
  CopiedBlock,
  CopiedBlocks,
  FingerprintPlan,
  HeldPageBlock,
  KeyBounds,
  PageRequest,
  PageThreads,
  ReadOptions,
  RowMemory,
  RowRange,
} from './source.ts';
import type { SourceConnectionOptions, SourceConnections } from './source_connection.ts';

/** Reads pages: in this thread, or in another one that holds the blocks. */
interface PageReader<Block> {
  /** Reads a page completely, in a short transaction. @throws as `SourceConnections.read` */
  read(page: PageRequest, signal: AbortSignal): Promise<CopiedBlocks<Block>>;
  /** The bytes of a block's rows. */
  bytesOf(block: Block): number;
  /** Releases a block that is not encoded. */
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

/** Limits of one page. */
interface PageLimits {
  readonly rows: number;
  readonly bytes: number;
}

/** A page that was read, and the key after which the next one starts. */
interface Page<Block> {
  readonly blocks: Block[];
  /** The key of the last row; null when no rows follow. */
  readonly next: SortKey | null;
  readonly rowBytes: number;
}

/** Assumed row size in bytes before the first page. Rather large, so that the first page arrives soon. */
const assumedRowBytes = 4_096;
/** The part of the byte limit that the expected rows fill, so that ordinary variation stays within it. */
const fillFactor = 0.9;

/** The settings of a statement: the range, its selection and the keys that bound it. */
export function statementSettings(
  query: Pick<ModelQuery, 'settings'>,
  { team_id, interval }: RowRange,
  more: Partial<Record<'after' | 'until', SortKey | null>> & {
    readonly every?: number;
    readonly buckets?: { readonly origin: string; readonly width_ms: number };
  } = {},
): Record<string, string> {
  const { after, until, every, buckets } = more;
  const values: Partial<QueryParameters> = {
    team_id: String(team_id),
    start: interval.start,
    end: interval.end,
    ...(after && { after_inserted_at: after.inserted_at, after_id: after.id }),
    ...(until && { until_inserted_at: until.inserted_at, until_id: until.id }),
    ...(every !== undefined && { every: String(every) }),
    ...(buckets && { origin: buckets.origin, bucket_ms: String(buckets.width_ms) }),
  };
  const settings: [string, string][] = Object.entries(values).map(([name, value]) => [
    parameterSetting(name as keyof QueryParameters),
    value,
  ]);
  return { ...Object.fromEntries(settings), ...query.settings };
}

/** How the rows of a range are fingerprinted. */
export const fingerprintPlanOf = (
  { hash, key }: Pick<ModelQuery, 'hash' | 'key'>,
  { interval }: Pick<RowRange, 'interval'>,
): FingerprintPlan => ({ hash, width_ms: bucketWidthMs(interval), origin: interval.start, ...key });

/**
 * Reads a key range page by page. Each page is read completely, in a separate transaction, before its first block is
 * yielded. The next page is read while the caller processes the blocks of the current one; then reading pauses,
 * without an open transaction.
 * The number of rows per page is estimated from the size of earlier rows, so that most pages end just below the byte
 * limit. If rows suddenly grow, the statement is cancelled at the limit and the next page starts after the last row
 * that was received.
 */
export async function* readPages<Block extends { readonly last: SortKey }>(
  reader: PageReader<Block>,
  query: ModelQuery,
  range: RowRange,
  { after, until }: KeyBounds,
  bounds: PageLimits,
  { blockBytes, signal, memory = unlimitedMemory }: ReadOptions,
): AsyncGenerator<Block & { readonly fingerprint: FingerprintPlan }> {
  const done = new AbortController();
  const reading = AbortSignal.any([signal, done.signal]);

  const fingerprint = fingerprintPlanOf(query, range);

  const readPage = async (from: SortKey | null, rowBytes: number): Promise<Page<Block>> => {
    const rows = Math.max(1, Math.min(bounds.rows, Math.floor((bounds.bytes * fillFactor) / rowBytes)));
    const select = query.page(rows, { after: from !== null, until: until !== null });
    const settings = statementSettings(query, range, { after: from, until });
    let reserved = Math.ceil(rows * rowBytes);
    await memory.reserveRows(reserved, reading);
    try {
      const { columns, key } = query;
      const page = { select, settings, columns, key, blockBytes, maxBytes: bounds.bytes };
      const copied = await reader.read(page, reading);
      reserved -= copied.bytes;
      return pageOf(copied, rows);
    } finally {
      memory.releaseRows(reserved);
    }
  };
  const dropBlocks = (blocks: readonly Block[]): void => {
    for (const block of blocks) {
      memory.releaseRows(reader.bytesOf(block));
      reader.drop(block);
    }
  };

  let page: Promise<Page<Block>> | undefined = readPage(after, assumedRowBytes);
  let current: Block[] = [];
  try {
    while (page) {
      const { blocks, next, rowBytes }: Page<Block> = await page;
      current = blocks;
      page = next ? readPage(next, rowBytes) : undefined;
      // The page is awaited later, after the caller has consumed the current blocks.
      page?.catch(() => undefined);
      for (let block = current.shift(); block; block = current.shift()) {
        yield { ...block, fingerprint };
        signal.throwIfAborted();
      }
    }
  } finally {
    done.abort(new Error('The caller needs no more pages.'));
    dropBlocks(current);
    await page?.then(({ blocks }) => dropBlocks(blocks)).catch(() => undefined);
  }
}

/** The memory of a caller without a budget. */
const unlimitedMemory: RowMemory = { reserveRows: () => Promise.resolve(), releaseRows: () => undefined };

const pageOf = <Block extends { readonly last: SortKey }>(
  { blocks, rows, bytes, truncated: cut }: CopiedBlocks<Block>,
  requested: number,
): Page<Block> => ({
  blocks,
  next: cut || rows >= requested ? (blocks.at(-1)?.last ?? null) : null,
  rowBytes: Math.max(1, bytes / Math.max(1, rows)),
});

/** Keys of one page: about 10 MB of memory. */
const defaultPageRows = 50_000;

/**
 * Reads the sort keys of a range in order. Each page is read completely, in a separate short transaction. Rows with equal
 * keys are all yielded.
 */
export async function* readKeys(
  connections: SourceConnections,
  query: Pick<ModelQuery, 'keys' | 'settings'>,
  range: RowRange,
  signal: AbortSignal,
  pageRows = defaultPageRows,
): AsyncGenerator<SortKey> {
  if (!query.keys) throw new RangeError('Only the keys of events can be read.');
  for (let after: SortKey | null = null; ;) {
    const text = query.keys(pageRows, { after: after !== null, until: false });
    const page: SortKey[] = await connections.read(
      statementSettings(query, range, { after }),
      signal,
      async ({ connection }) => (await connection.query<SortKey>(text)).rows,
    );
    for (const { inserted_at, id } of page) yield { inserted_at, id };
    const last = page.at(-1);
    if (page.length < pageRows || !last) return;
    after = last;
  }
}

/** More rows than a range has: the row with an id may be the last one. */
const everyRow = 2_147_483_647;

/** Finds the key of the row with this id in a range; null if there is none. */
export async function findKey(
  connections: SourceConnections,
  query: Pick<ModelQuery, 'keys' | 'settings'>,
  range: RowRange,
  id: string,
  signal: AbortSignal | undefined,
): Promise<SortKey | null> {
  if (!query.keys) throw new RangeError('Only events can be found by their id.');
  const keys = query.keys(everyRow, { after: false, until: false });
  return connections.read(statementSettings(query, range), signal, async ({ connection }) => {
    const { rows } = await connection.query<SortKey>(
      `select inserted_at, id from (${keys}) as key where id = $1 limit 1`,
      [id],
    );
    const [found] = rows;
    return found ? { inserted_at: found.inserted_at, id: found.id } : null;
  });
}

/** Whether the files of a selection of events contain the sort keys of their rows, under the names of the model. */
export const filesHaveKeys = ({ query }: Pick<RowSelection, 'query'>): boolean =>
  !query ||
  ['_inserted_at', 'uuid'].every((column) =>
    query.fields.some(({ name, expression }) => name === column && expression === column),
  );
