import pg from 'pg';
import { addFingerprints, bucketInterval, bucketWidthMs, type Fingerprint } from '../domain/fingerprint.ts';
import type { DataInterval } from '../domain/intervals.ts';
import { copyOut } from './copy_out.ts';
import { fingerprintOf, type FingerprintRow, fingerprintSettings, type ModelQuery } from './model_query.ts';
import { fingerprintPlanOf, statementSettings } from './pages.ts';
import { allRows } from './row_selection.ts';
import type { RowBlock, RowRange } from './source.ts';
import type { ReadTransaction, SourceConnections } from './source_connection.ts';

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
type CreateModelQuery = (
  connection: ReadTransaction['connection'],
  range: Pick<RowRange, 'model' | 'team_id' | 'selection'>,
) => Promise<ModelQuery>;

/** By default an interval has its own bucket length. */
interface FingerprintOptions {
  readonly width_ms?: number;
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
  { width_ms = bucketWidthMs(range.interval) }: FingerprintOptions = {},
): Promise<Fingerprint> {
  const buckets = { origin: range.interval.start, width_ms };
  let selected: Awaited<ReturnType<typeof selectComparableRows>> | undefined;

  const readOnce = (
    interval: DataInterval,
    timeout: Readonly<Record<string, string>>,
  ): Promise<Fingerprint> =>
    connections.read(timeout, signal, async ({ connection, set }) => {
      selected ??= await selectComparableRows(connection, createQuery, range);
      const { query, all_events } = selected;
      await set({
        ...statementSettings(query, { ...range, interval }, { buckets }),
        ...fingerprintSettings[query.hash],
      });
      const { rows } = await connection.query<FingerprintRow>(query.fingerprint());
      return { ...fingerprintOf(rows, { hash: query.hash, width_ms }), ...(all_events && { all_events }) };
    });

  const fingerprints: Fingerprint[] = [];
  for await (const fingerprint of readDivided(connections, range.interval, signal, readOnce))
    fingerprints.push(fingerprint);
  const [first, ...others] = fingerprints;
  if (!first) throw new RangeError('The interval is empty.');
  return addFingerprints(first, ...others);
}

/** All events of the project where the current state of persons decides which of them are selected. */
async function selectComparableRows(
  connection: ReadTransaction['connection'],
  createQuery: CreateModelQuery,
  range: RowRange,
): Promise<{ readonly query: ModelQuery; readonly all_events?: true }> {
  const query = await createQuery(connection, range);
  if (!query.selectsByPerson) return { query };
  return { query: await createQuery(connection, { ...range, selection: allRows }), all_events: true };
}

/**
 * Reads the fingerprints of adjacent intervals of equal length, in order, with one statement. If their buckets do not
 * divide them evenly, each interval is read separately.
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
  const perInterval = (Date.parse(first.end) - Date.parse(first.start)) / width_ms;
  if (intervals.length === 1 || !Number.isInteger(perInterval)) {
    const fingerprints: Fingerprint[] = [];
    for (const interval of intervals)
      fingerprints.push(await readFingerprint(connections, createQuery, { ...range, interval }, signal));
    return fingerprints;
  }
  const interval = { start: first.start, end: last.end };
  const whole = await readFingerprint(connections, createQuery, { ...range, interval }, signal, { width_ms });
  const byInterval = Map.groupBy(whole.buckets, ({ index }) => Math.floor(index / perInterval));
  return intervals.map((_, position) => ({
    ...whole,
    buckets: (byInterval.get(position) ?? []).map((bucket) => ({
      ...bucket,
      index: bucket.index - position * perInterval,
    })),
  }));
}

/** The size of a sample: enough rows to see how well they compress, and few enough to encode without being noticed. */
const maxSampleBytes = 256 * 1024;

/**
 * Reads the first rows of a range, as one block that ends before `rows` rows when they are large. Null when the range
 * has no rows.
 */
export const readSample = (
  connections: SourceConnections,
  createQuery: CreateModelQuery,
  range: RowRange,
  rows: number,
  signal: AbortSignal | undefined,
): Promise<RowBlock | null> =>
  connections.read({}, signal, async ({ connection, set, cancel }) => {
    const query = await createQuery(connection, range);
    await set(statementSettings(query, range));
    const select = query.page(rows, { after: false, until: false });
    const limits = { blockBytes: maxSampleBytes, maxBytes: maxSampleBytes, onFull: cancel };
    const [block] = (await copyOut(connection, select, query, limits)).blocks;
    return block === undefined ? null : { ...block, fingerprint: fingerprintPlanOf(query, range) };
  });
