import pg from 'pg';
import { addFingerprints, bucketInterval, bucketWidthMs, type Fingerprint } from '../domain/fingerprint.ts';
import type { DataInterval } from '../domain/intervals.ts';
import { fingerprintOf, fingerprintSettings, type FingerprintRow } from './fingerprint_query.ts';
import type { ModelQuery } from './model_query.ts';
import { statementSettings } from './pages.ts';
import { allRows } from './row_selection.ts';
import type { RowRange } from './source.ts';
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

/** Builds the statements of a range. */
export type CreateModelQuery = (
  connection: ReadTransaction['connection'],
  range: Pick<RowRange, 'model' | 'team_id' | 'selection'>,
) => Promise<ModelQuery>;

/** By default an interval has its own bucket length, and statements may run for 20 seconds. */
export interface FingerprintOptions {
  readonly statementMs?: number;
  readonly width_ms?: number;
}

/**
 * Reads the fingerprint of a range with one statement. One that runs for too long is cancelled and replaced by one for
 * each of up to 64 subintervals.
 * @throws FingerprintHashDiffers, and the signal's reason when it is aborted
 */
export async function readFingerprint(
  connections: SourceConnections,
  createQuery: CreateModelQuery,
  range: RowRange,
  signal: AbortSignal | undefined,
  { statementMs = maxStatementMs, width_ms = bucketWidthMs(range.interval) }: FingerprintOptions = {},
): Promise<Fingerprint> {
  const buckets = { origin: range.interval.start, width_ms };
  let selected: Awaited<ReturnType<typeof selectComparableRows>> | undefined;

  const readOnce = (interval: DataInterval, timeout: Record<string, string>): Promise<Fingerprint> =>
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

  const statement_timeout = String(Math.min(statementMs, connections.statementTimeoutMs));
  const readInterval = async (interval: DataInterval): Promise<Fingerprint> => {
    const [first, ...others] = subintervalsOf(interval);
    if (!first || others.length === 0) return readOnce(interval, {});
    try {
      return await readOnce(interval, { statement_timeout });
    } catch (error) {
      if (signal?.aborted || !isTooLong(error)) throw error;
    }
    let fingerprint = await readInterval(first);
    for (const subinterval of others)
      fingerprint = addFingerprints(fingerprint, await readInterval(subinterval));
    return fingerprint;
  };

  return readInterval(range.interval);
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

/** Divides an interval into subintervals of whole milliseconds, as many as it has buckets. */
function subintervalsOf(interval: DataInterval): DataInterval[] {
  const width_ms = bucketWidthMs(interval);
  const start = new Date(interval.start).getTime();
  const length = new Date(interval.end).getTime() - start;
  return Array.from({ length: Math.ceil(length / width_ms) }, (_, index) =>
    bucketInterval(interval, { width_ms }, index),
  );
}
