import type { RowOfKey, SortKey } from '../domain/sort_key.ts';
import { inStatementSpan } from '../tracing/spans.ts';
import type { BadRow, BadRowReader } from './bad_row.ts';
import { type BlockMemory, copyOut, copyStatement, newMemory } from './copy_out.ts';
import { type ModelQuery, pageOfKeySettings, statementSettings } from './model_query.ts';
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
import { fingerprintPlanOf } from './read_fingerprints.ts';

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
  { select, settings, columns, key, within, blockBytes, maxBytes, maxRowBytes }: PageRequest,
  signal: AbortSignal,
  memory: BlockMemory = newMemory,
): Promise<CopiedBlocks> =>
  connections.read(settings, signal, ({ connection, cancel }) =>
    copyOut(
      connection,
      select,
      { columns, key },
      { blockBytes, maxBytes, maxRowBytes, within, endsWithinKey: within !== undefined, onFull: cancel },
      memory,
    ),
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
  /** Maximum size of a row. */
  readonly rowBytes: number;
}

/** A page that was read, and the key after which the next one starts. */
interface Page<Block> {
  readonly blocks: Block[];
  /** The key of the last row, or a row of a key; null when no rows follow. */
  readonly next: SortKey | null;
  readonly rowBytes: number;
}

/** Assumed row size in bytes before the first page. Rather large, so that the first page arrives soon. */
const assumedRowBytes = 4_096;
/** The part of the byte limit that the expected rows fill, so that ordinary variation stays within it. */
const fillFactor = 0.9;

/**
 * Reads a key range page by page. Each page is read completely, in a separate transaction, before its first block is
 * yielded. The next page is read while the caller processes the blocks of the current one; then reading pauses,
 * without an open transaction.
 * The number of rows per page is estimated from the size of earlier rows, so that most pages end just below the byte
 * limit. If rows suddenly grow, the statement is cancelled at the limit and the next page starts after the last key
 * that was received with all its rows. A key with more rows than fit into a page is read in pages of its own.
 */
export async function* readPages<Block extends { readonly last: SortKey }>(
  reader: PageReader<Block>,
  query: ModelQuery,
  range: RowRange,
  { after, until }: KeyBounds,
  bounds: PageLimits,
  {
    blockBytes,
    signal,
    memory = unlimitedMemory,
    lists,
    badRows,
  }: ReadOptions & {
    /** Connections for the ids of one time. */
    readonly lists: Pick<SourceConnections, 'read'>;
    /** Finds rows that PostgreSQL cannot read; null if reading fails with the first. */
    readonly badRows: BadRowReader | null;
  },
): AsyncGenerator<Block & { readonly fingerprint: FingerprintPlan }> {
  const done = new AbortController();
  const reading = AbortSignal.any([signal, done.signal]);

  const fingerprint = fingerprintPlanOf(query, range);

  /** The ids of one time, the first of which was read already. */
  let ofTime: { readonly inserted_at: string; readonly ids: readonly string[] } | undefined;
  /** The ids after a key of the same time, where one reading of them all is cheaper than one for each page. */
  const idsAfter = async (key: SortKey): Promise<readonly string[]> => {
    const read = ofTime?.inserted_at === key.inserted_at ? ofTime.ids.indexOf(key.id) : -1;
    if (ofTime && read >= 0 && read < ofTime.ids.length - 1) return ofTime.ids.slice(read + 1);
    const ids = query.ofTime ? await readIds(lists, query.ofTime, range, { after: key, until }, reading) : [];
    ofTime = { inserted_at: key.inserted_at, ids: [key.id, ...ids] };
    return ids;
  };

  /** The next row that PostgreSQL cannot read. Pages end before it; then it is read without the values at fault. */
  let badRow: BadRow | null = null;
  /** Settings of statements after such a row. */
  let settingsAround: Readonly<Record<string, string>> = {};

  const planAfter = async (
    from: SortKey | null,
    wanted: number,
    before: SortKey | null,
  ): Promise<PagePlan> => {
    if (from?.within) return planPageOfKey(query, range, { ...from, within: from.within }, until, wanted);
    if (badRows && badRow) {
      const { before: last, key } = badRow;
      if (!isSameStart(from, last)) return { ...planPage(query, range, from, last, wanted), next: last };
      const statement = await badRows.statementOf(badRow);
      badRow = null;
      return { ...statement, columns: query.columns, rows: 1, next: key };
    }
    // The page before had rows of one time alone.
    if (from && query.ofTime && before?.inserted_at === from.inserted_at) {
      const ids = (await idsAfter(from)).slice(0, wanted);
      const last = ids.at(-1);
      if (last !== undefined)
        return {
          select: query.ofTime.page(),
          settings: statementSettings(query, range, { after: from, ids }),
          columns: query.columns,
          rows: ids.length,
          next: { inserted_at: from.inserted_at, id: last },
        };
    }
    return planPage(query, range, from, until, wanted);
  };

  /** @param before the key after which the page before started */
  const readPage = async (
    from: SortKey | null,
    rowBytes: number,
    before: SortKey | null,
  ): Promise<Page<Block>> => {
    const wanted = Math.max(1, Math.min(bounds.rows, Math.floor((bounds.bytes * fillFactor) / rowBytes)));
    const { rows, next, settings, ...statement } = await planAfter(from, wanted, before);
    let reserved = Math.ceil(rows * rowBytes);
    await memory.reserveRows(reserved, reading);
    try {
      const limits = { blockBytes, maxBytes: bounds.bytes, maxRowBytes: bounds.rowBytes };
      const copied = await reader.read(
        { key: query.key, ...statement, ...limits, settings: { ...settings, ...settingsAround } },
        reading,
      );
      reserved -= copied.bytes;
      return pageOf(copied, rows, next, rowBytes);
    } finally {
      memory.releaseRows(reserved);
    }
  };
  /** Reads a page as `readPage`, and around a row that PostgreSQL cannot read. */
  const readAround: typeof readPage = async (from, rowBytes, before) => {
    try {
      return await readPage(from, rowBytes, before);
    } catch (error) {
      if (!badRows || badRow || from?.within || until?.within || !badRows.mayCause(error)) throw error;
      badRow = await badRows.find({ after: from, until });
      if (!badRow) throw error;
      settingsAround = badRows.settings;
      return readPage(from, rowBytes, before);
    }
  };
  const dropBlocks = (blocks: readonly Block[]): void => {
    for (const block of blocks) {
      memory.releaseRows(reader.bytesOf(block));
      reader.drop(block);
    }
  };

  let page: Promise<Page<Block>> | undefined = readAround(after, assumedRowBytes, null);
  let current: Block[] = [];
  let from = after;
  try {
    while (page) {
      const { blocks, next, rowBytes }: Page<Block> = await page;
      current = blocks;
      page = next && !(until && isSameRow(next, until)) ? readAround(next, rowBytes, from) : undefined;
      from = next;
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

/** The statement of a page. */
interface PagePlan extends Pick<PageRequest, 'select' | 'settings' | 'columns' | 'within'> {
  /** How many rows it reads at least, if there are as many. */
  readonly rows: number;
  /** Where reading goes on after the last page of this kind; null at the end of the key range. */
  readonly next: SortKey | null;
}

/** Reads the ids of the rows of the time of `after`, after its id. */
const readIds = (
  connections: Pick<SourceConnections, 'read'>,
  ofTime: NonNullable<ModelQuery['ofTime']>,
  range: RowRange,
  { after, until }: { readonly after: SortKey; readonly until: SortKey | null },
  signal: AbortSignal,
): Promise<string[]> =>
  connections.read(
    statementSettings({ settings: {} }, range, { after, until }),
    signal,
    async ({ connection }) =>
      (
        await connection.query<{ id: string }>(ofTime.ids(until?.within ? 'exclusive' : until !== null))
      ).rows.map(({ id }) => id),
  );

/** The first row of a key, whose rows are read in the order of their hashes. */
const firstOfKey: RowOfKey = { row_hash: String(-(2n ** 63n)), copies: 0 };

/** Plans a page of whole keys. Where `until` is a row of a key, the rows of that key follow. */
function planPage(
  query: ModelQuery,
  range: RowRange,
  after: SortKey | null,
  until: SortKey | null,
  rows: number,
): PagePlan {
  const bound = until?.within ? 'exclusive' : until !== null;
  return {
    select: query.page(rows, { after: after !== null, until: bound }),
    settings: statementSettings(query, range, { after, until }),
    columns: query.columns,
    rows,
    next: until?.within ? { ...until, within: firstOfKey } : null,
  };
}

/**
 * Plans a page of the rows of one key after one of them. Where `until` is a row of the key, all rows with smaller hashes are
 * read, then as many with its hash as it says.
 */
function planPageOfKey(
  query: ModelQuery,
  range: RowRange,
  after: SortKey & { readonly within: RowOfKey },
  until: SortKey | null,
  wanted: number,
): PagePlan {
  const { within, ...key } = after;
  const isLastKey = until !== null && isSameKey(until, key);
  const end = isLastKey ? until.within : undefined;
  const isLastHash = end?.row_hash === within.row_hash;
  const beforeHash = isLastHash ? undefined : end?.row_hash;
  const rows = isLastHash ? Math.min(wanted, end.copies - within.copies) : wanted;
  const afterKey = isLastKey ? null : key;
  return {
    select: query.pageOfKey(rows, { beforeHash: beforeHash !== undefined }),
    settings: { ...statementSettings(query, range, { after, beforeHash }), ...pageOfKeySettings },
    columns: query.columns,
    within,
    rows,
    next: beforeHash === undefined ? afterKey : { ...key, within: { row_hash: beforeHash, copies: 0 } },
  };
}

/** Whether two keys are the same start of a page; null is that of the range. */
const isSameStart = (one: SortKey | null, other: SortKey | null): boolean =>
  one === null || other === null ? one === other : isSameRow(one, other);

const isSameKey = (one: SortKey, other: SortKey): boolean =>
  one.inserted_at === other.inserted_at && one.id === other.id;

/** Whether two keys name the same row. */
const isSameRow = (one: SortKey, other: SortKey): boolean =>
  isSameKey(one, other) &&
  one.within?.row_hash === other.within?.row_hash &&
  one.within?.copies === other.within?.copies;

/** @param next where reading goes on when these are all rows that the statement finds */
const pageOf = <Block extends { readonly last: SortKey }>(
  { blocks, rows, bytes, truncated, wideKey }: CopiedBlocks<Block>,
  requested: number,
  next: SortKey | null,
  rowBytes: number,
): Page<Block> => ({
  blocks,
  next: wideKey
    ? { ...wideKey, within: firstOfKey }
    : truncated || rows >= requested
      ? (blocks.at(-1)?.last ?? null)
      : next,
  rowBytes: rows === 0 ? rowBytes : Math.max(1, bytes / rows),
});

/** Keys of one page: about 10 MB of memory. */
export const defaultPageRows = 50_000;
