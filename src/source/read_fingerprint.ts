import { addFingerprints, bucketWidthMs, type Fingerprint } from '../domain/fingerprint.ts';
import type { DataInterval } from '../domain/intervals.ts';
import { fingerprintOf, fingerprintSettings, type FingerprintRow } from './fingerprint_query.ts';
import type { ModelQuery } from './model_query.ts';
import { statementSettings } from './pages.ts';
import { readDivided } from './read_divided.ts';
import { allRows } from './row_selection.ts';
import type { RowRange } from './source.ts';
import type { ReadTransaction, SourceConnections } from './source_connection.ts';

/** Builds the statements of a range. */
export type CreateModelQuery = (
  connection: ReadTransaction['connection'],
  range: Pick<RowRange, 'model' | 'team_id' | 'selection'>,
) => Promise<ModelQuery>;

/** By default an interval has its own bucket length. */
export interface FingerprintOptions {
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
