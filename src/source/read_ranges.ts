import pg from 'pg';
import { bounds } from '../config/bounds.ts';
import type { Model } from '../domain/batch_export.ts';
import type { RowOfKey, SortKey } from '../domain/exported_files.ts';
import {
  addFingerprints,
  bucketInterval,
  bucketsOf,
  bucketWidthMs,
  encodeBuckets,
  type Fingerprint,
} from '../domain/fingerprint.ts';
import type { DataInterval } from '../domain/intervals.ts';
import { inStatementSpan } from '../tracing/spans.ts';
import type { BadRow, BadRowReader } from './bad_row.ts';
import { type BlockMemory, copyOut, copyStatement, newMemory } from './copy_out.ts';
import {
  fingerprintOf,
  type FingerprintRow,
  fingerprintSettings,
  type ModelQuery,
  pageOfKeySettings,
  everyRow,
  statementSettings,
} from './model_query.ts';
import { allRows, type ExportedColumn, type RowSelection } from './row_selection.ts';
import type {
  CopiedBlock,
  CopiedBlocks,
  FingerprintPlan,
  HeldPageBlock,
  KeyBounds,
  PageRequest,
  PageThreads,
  ReadOptions,
  RowBlock,
  RowKey,
  RowMemory,
  RowRange,
  SampleOptions,
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

/** How the rows of a range are fingerprinted. */
const fingerprintPlanOf = (
  { hash, key }: Pick<ModelQuery, 'hash' | 'key'>,
  { interval }: Pick<RowRange, 'interval'>,
): FingerprintPlan => ({ hash, width_ms: bucketWidthMs(interval), origin: interval.start, ...key });

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
const defaultPageRows = 50_000;
/** How many times as many keys a page has after one of a single time, because each of them may sort all keys of that time. */
const rowsOfTime = 4;

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
): AsyncGenerator<RowKey> {
  let wanted = pageRows;
  for (let after: SortKey | null = null; ;) {
    const text = query.keys(wanted, { after: after !== null, until: false });
    const page: RowKey[] = await connections.read(
      statementSettings(query, range, { after }),
      signal,
      async ({ connection }) => (await connection.query<RowKey>(text)).rows,
    );
    for (const { inserted_at, id, version } of page) yield { inserted_at, id, version };
    const last = page.at(-1);
    if (page.length < wanted || !last) return;
    wanted = pageRows * (page[0]?.inserted_at === last.inserted_at ? rowsOfTime : 1);
    after = last;
  }
}

/** Finds the key of the row with this id in a range; null if there is none. */
export async function findKey(
  connections: SourceConnections,
  query: Pick<ModelQuery, 'keys' | 'settings'>,
  range: RowRange,
  id: string,
  signal: AbortSignal | undefined,
): Promise<SortKey | null> {
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

/** The column of the files with the id of a row. */
export const idColumns: Readonly<Record<Model, string>> = { events: 'uuid', persons: 'distinct_id' };

/** Whether the files of a selection contain the sort keys of their rows, under the names of the model. */
export const filesHaveKeys = ({
  model,
  selection: { query },
}: Pick<RowRange, 'model'> & { readonly selection: Pick<RowSelection, 'query'> }): boolean =>
  !query ||
  ['_inserted_at', idColumns[model]].every((column) =>
    query.fields.some(({ name, expression }) => name === column && expression === column),
  );

/**
 * How long a statement may run before its interval is read in shorter ones. Shorter than the 30 s after which a standby
 * cancels a statement that holds back its replay by default; long enough for 20 million rows.
 */
const maxStatementMs = 20_000;

/** Cancelled by its timeout, and by a standby whose replay it held back. */
const tooLongCodes: readonly (string | undefined)[] = ['57014', '40001'];
const isTooLong = (error: unknown): boolean =>
  error instanceof pg.DatabaseError && tooLongCodes.includes(error.code);

/**
 * Reads an interval with one statement. One that runs for too long is cancelled and replaced by one for each of up to 64
 * subintervals.
 * @param read reads one of them, with the settings of its statement
 * @returns what was read, in order
 */
export async function* readDivided<Result>(
  { statementTimeoutMs }: Pick<SourceConnections, 'statementTimeoutMs'>,
  interval: DataInterval,
  signal: AbortSignal | undefined,
  read: (interval: DataInterval, settings: Readonly<Record<string, string>>) => Promise<Result>,
): AsyncGenerator<Result> {
  const subintervals = subintervalsOf(interval);
  if (subintervals.length <= 1) {
    yield await read(interval, {});
    return;
  }
  const statement_timeout = String(Math.min(maxStatementMs, statementTimeoutMs));
  let whole: { readonly result: Result } | undefined;
  try {
    whole = { result: await read(interval, { statement_timeout }) };
  } catch (error) {
    if (signal?.aborted || !isTooLong(error)) throw error;
  }
  if (whole) yield whole.result;
  else
    for (const subinterval of subintervals)
      yield* readDivided({ statementTimeoutMs }, subinterval, signal, read);
}

/** Divides an interval into subintervals of whole milliseconds, as many as it has buckets. */
function subintervalsOf(interval: DataInterval): DataInterval[] {
  const width_ms = bucketWidthMs(interval);
  const start = new Date(interval.start).getTime();
  const length = new Date(interval.end).getTime() - start;
  return Array.from({ length: Math.ceil(length / width_ms) }, (_, index) =>
    bucketInterval(interval, { width_ms }, index),
  );
}

/** Builds the statements of a range. */
export type CreateModelQuery = (
  range: Pick<RowRange, 'model' | 'team_id' | 'selection'>,
  signal: AbortSignal | undefined,
) => Promise<ModelQuery>;

/** By default an interval has its own bucket length. */
interface FingerprintOptions {
  readonly width_ms?: number;
  /** Whether hashes are of ids with their times, for rows whose times change. By default of ids alone. */
  readonly ofStates?: boolean;
}

/**
 * Reads the fingerprint of a range with one statement, or with several if it runs for too long.
 * @throws FingerprintHashDiffers, and the signal's reason when it is aborted
 */
export async function readFingerprint(
  connections: SourceConnections,
  createQuery: CreateModelQuery,
  range: RowRange,
  signal: AbortSignal | undefined,
  { width_ms = bucketWidthMs(range.interval), ofStates = false }: FingerprintOptions = {},
): Promise<Fingerprint> {
  const buckets = { origin: range.interval.start, width_ms };
  const { query, all_events } = await selectComparableRows(createQuery, range, signal);

  const readOnce = (
    interval: DataInterval,
    timeout: Readonly<Record<string, string>>,
  ): Promise<Fingerprint> => {
    const settings = {
      ...timeout,
      ...statementSettings(query, { ...range, interval }, { buckets }),
      ...fingerprintSettings[query.hash],
    };
    return connections.read(settings, signal, async ({ connection }) => {
      const { rows } = await connection.query<FingerprintRow>(query.fingerprint({ ofStates }));
      return {
        ...fingerprintOf(rows, { hash: query.hash, width_ms }),
        ...(all_events && { all_events }),
        ...(ofStates && { of_states: true as const }),
      };
    });
  };

  const fingerprints: Fingerprint[] = [];
  for await (const fingerprint of readDivided(connections, range.interval, signal, readOnce))
    fingerprints.push(fingerprint);
  const [first, ...others] = fingerprints;
  if (!first) throw new RangeError('The interval is empty.');
  return addFingerprints(first, ...others);
}

/** All events of the project where the current state of persons decides which of them are selected. */
async function selectComparableRows(
  createQuery: CreateModelQuery,
  range: RowRange,
  signal: AbortSignal | undefined,
): Promise<{ readonly query: ModelQuery; readonly all_events?: true }> {
  const query = await createQuery(range, signal);
  if (!query.selectsByPerson) return { query };
  return { query: await createQuery({ ...range, selection: allRows }, signal), all_events: true };
}

/**
 * Reads the fingerprints of adjacent intervals of equal length, in order, with one statement. If their buckets do not
 * divide them evenly, each interval is read separately. Those of persons are of states.
 * @throws FingerprintHashDiffers, and the signal's reason when it is aborted
 */
export async function readFingerprints(
  connections: SourceConnections,
  createQuery: CreateModelQuery,
  range: Omit<RowRange, 'interval'>,
  intervals: readonly DataInterval[],
  signal: AbortSignal | undefined,
): Promise<Fingerprint[]> {
  const [first] = intervals;
  const last = intervals.at(-1);
  if (!first || !last) return [];
  const width_ms = bucketWidthMs(first);
  const ofStates = range.model === 'persons';
  const perInterval = (Date.parse(first.end) - Date.parse(first.start)) / width_ms;
  if (intervals.length === 1 || !Number.isInteger(perInterval)) {
    const fingerprints: Fingerprint[] = [];
    for (const interval of intervals)
      fingerprints.push(
        await readFingerprint(connections, createQuery, { ...range, interval }, signal, { ofStates }),
      );
    return fingerprints;
  }
  const interval = { start: first.start, end: last.end };
  const options = { width_ms, ofStates };
  const whole = await readFingerprint(connections, createQuery, { ...range, interval }, signal, options);
  const byInterval = Map.groupBy(bucketsOf(whole), ({ index }) => Math.floor(index / perInterval));
  return intervals.map((_, position) => ({
    ...whole,
    encoded_buckets: encodeBuckets(
      (byInterval.get(position) ?? []).map((bucket) => ({
        ...bucket,
        index: bucket.index - position * perInterval,
      })),
    ),
  }));
}

/** The size of a sample: enough rows to see how well they compress, and few enough to encode without being noticed. */
const maxSampleBytes = 256 * 1024;

/** Each value of a preview keeps this many characters, however many columns there are. */
const minCutCharacters = 16;

/** The rows of a page with long values cut, evenly by the number of columns. JSON that is cut becomes a string. */
function cutValues(select: string, columns: readonly ExportedColumn[]): string {
  const evenly = Math.floor(bounds.previewRow.max / columns.length);
  const characters = Math.max(minCutCharacters, Math.min(bounds.previewValue.max, evenly));
  const cut = ({ type }: ExportedColumn, index: number): string => {
    const value = `c${index}`;
    switch (type) {
      case 'text':
        return `case when octet_length(${value}) > ${characters} then left(${value}, ${characters}) || '…' else ${value} end`;
      case 'json':
        return `case when octet_length(${value}::text) > ${characters} then to_json(left(${value}::text, ${characters}) || '…') else ${value}::text::json end`;
      default:
        return value;
    }
  };
  const names = columns.map((_, index) => `c${index}`).join(', ');
  return `select ${columns.map(cut).join(', ')} from (${select}) as row (${names})`;
}

/**
 * Reads the first rows of a range, as one block that ends before `rows` rows when they are large. Null when the range
 * has no rows.
 * @throws RowTooWide for a row whose values are not cut
 */
export async function readSample(
  connections: SourceConnections,
  createQuery: CreateModelQuery,
  range: RowRange,
  { rows, cutsValues = false, signal }: SampleOptions,
): Promise<RowBlock | null> {
  const query = await createQuery(range, signal);
  return connections.read(statementSettings(query, range), signal, async ({ connection, cancel }) => {
    const page = query.page(rows, { after: false, until: false });
    const select = cutsValues ? cutValues(page, query.columns) : page;
    const limits = {
      blockBytes: maxSampleBytes,
      maxBytes: maxSampleBytes,
      endsWithinKey: true,
      onFull: cancel,
      maxRow: bounds.sampledRow,
      enoughMs: bounds.sampleTime.max,
    };
    const [block] = (await copyOut(connection, select, query, limits)).blocks;
    return block === undefined ? null : { ...block, fingerprint: fingerprintPlanOf(query, range) };
  });
}
