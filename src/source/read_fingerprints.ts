/** Counts rows and adds up their hashes, for intervals that may be too long for one statement. */
import pg from 'pg';
import type { Model } from '../domain/batch_export.ts';
import {
  addFingerprints,
  bucketInterval,
  bucketsOf,
  bucketWidthMs,
  encodeBuckets,
  type Fingerprint,
} from '../domain/fingerprint.ts';
import type { DataInterval } from '../domain/intervals.ts';
import {
  fingerprintOf,
  type FingerprintRow,
  fingerprintSettings,
  type ModelQuery,
  statementSettings,
} from './model_query.ts';
import { allRows, type RowSelection } from './row_selection.ts';
import type { FingerprintPlan, RowRange } from './source.ts';
import type { SourceConnections } from './source_connection.ts';

/** How the rows of a range are fingerprinted. */
export const fingerprintPlanOf = (
  { hash, key }: Pick<ModelQuery, 'hash' | 'key'>,
  { interval }: Pick<RowRange, 'interval'>,
): FingerprintPlan => ({ hash, width_ms: bucketWidthMs(interval), origin: interval.start, ...key });

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
  if (countSubintervals(interval) <= 1) {
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
    for (const subinterval of subintervalsOf(interval))
      yield* readDivided({ statementTimeoutMs }, subinterval, signal, read);
}

/** Divides an interval into subintervals of whole milliseconds, as many as it has buckets. */
function subintervalsOf(interval: DataInterval): DataInterval[] {
  const width_ms = bucketWidthMs(interval);
  return Array.from({ length: countSubintervals(interval) }, (_, index) =>
    bucketInterval(interval, { width_ms }, index),
  );
}

const countSubintervals = (interval: DataInterval): number =>
  Math.ceil((Date.parse(interval.end) - Date.parse(interval.start)) / bucketWidthMs(interval));

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
      // Without constants of the run: prepared, it is planned once for all of them, for each partition of a table.
      const { rows } = await connection.query<FingerprintRow>(query.fingerprint({ ofStates }), []);
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
