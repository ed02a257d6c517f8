import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { classifyError } from '../../src/failures/classify_error.ts';
import { readOpenFaults } from '../../src/failures/operator_faults.ts';
import { createPool, findPooler, type Pool } from '../../src/journal/database.ts';
import { answerSettings } from '../../src/network/postgresql_session.ts';
import { createSource } from '../../src/source/postgres_source.ts';
import { allRows } from '../../src/source/row_selection.ts';
import { createLogger } from '../../src/telemetry/logger.ts';
import { s3Settings } from '../destination/bucket_requests.ts';
import { interval } from '../export/export_harness.ts';
import { createTestDatabase, type TestDatabase } from '../setup/database.ts';
import { startPgbouncer } from '../setup/pgbouncer.ts';
import { createFaultAlarm } from '../../src/failures/fault_alarm.ts';

let database: TestDatabase;
const closing: (() => Promise<unknown>)[] = [];
beforeAll(async () => {
  database = await createTestDatabase();
});
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});
afterAll(() => database.drop());

const ignored = { ignore_startup_parameters: 'options,statement_timeout' };

/** A pool through PgBouncer, or without it. */
async function open(
  mode: 'session' | 'transaction' | 'statement' | null,
  settings: Record<string, string> = ignored,
): Promise<Pool> {
  const through = mode && (await startPgbouncer(database.url, mode, settings));
  if (through) closing.push(() => through.close());
  const pool = createPool(through?.url ?? database.url, { max: 5 });
  closing.push(() => pool.end());
  return pool;
}

/** The faults that a worker with this control database has found. */
async function faultsOf(pool: Pool) {
  await database.pool.query('delete from exportd.operator_faults');
  const settings = s3Settings();
  const alarm = createFaultAlarm(
    pool,
    settings,
    createLogger('test', { EXPORTD_LOG_LEVEL: 'silent' }),
    undefined,
  );
  alarm.start();
  await alarm.stop();
  return readOpenFaults(database.pool);
}

describe('a control database', () => {
  it('without a pooler, or behind one that keeps sessions, is no fault', async () => {
    for (const mode of [null, 'session'] as const) {
      const pool = await open(mode);
      expect(await findPooler(pool)).toBe(mode);
      expect(await faultsOf(pool)).toEqual([]);
    }
  });

  it('behind a pooler that shares sessions is a fault that says what to set', async () => {
    const pool = await open('transaction');
    expect(await findPooler(pool)).toBe('transaction');
    expect(await faultsOf(pool)).toEqual([
      expect.objectContaining({
        type: 'PoolerUnsupported',
        message: expect.stringMatching(/transaction mode answers at DATABASE_URL.*pool_mode = session/),
      }),
    ]);
  });

  it('has the settings of its sessions, although the pooler ignores them', async () => {
    const name = new URL(database.url).pathname.slice(1);
    await database.pool.query(`alter database ${name} set timezone to 'Asia/Tokyo'`);
    await database.pool.query(`alter database ${name} set datestyle to 'German'`);
    const pool = await open('session');
    const { rows } = await pool.query<{ name: string; setting: string }>(
      'select name, setting from pg_settings where name = any($1)',
      [[...Object.keys(answerSettings), 'statement_timeout']],
    );
    expect(Object.fromEntries(rows.map((row) => [row.name, row.setting]))).toEqual({
      ...answerSettings,
      statement_timeout: '60000',
    });
  });

  it('behind a pooler that refuses these settings is a fault that says what to set', async () => {
    const pool = await open('session', {});
    const error: unknown = await pool.query('select 1').catch((rejected: unknown) => rejected);
    expect(classifyError(error)).toMatchObject({
      type: 'PoolerUnsupported',
      owner: 'operator',
      permanent: false,
      message: expect.stringMatching(/startup parameter.*ignore_startup_parameters/),
    });
  });
});

describe('a source', () => {
  const fingerprint = async (mode: 'session' | 'transaction' | 'statement') => {
    const through = await startPgbouncer(database.url, mode);
    closing.push(() => through.close());
    const source = createSource({ sourceUrl: through.url, settings: s3Settings() });
    closing.push(() => source.close());
    const range = { model: 'events', team_id: 1, interval, selection: allRows } as const;
    // So often that a direct connection would prepare it.
    for (let count = 0; count < 10; count += 1)
      await Promise.all([1, 2, 3].map(() => source.fingerprint(range, new AbortController().signal)));
    return source.fingerprint(range, new AbortController().signal);
  };

  it.each(['session', 'transaction'] as const)('is read through a pooler in %s mode', async (mode) => {
    expect(await fingerprint(mode)).toMatchObject({ encoded_buckets: '' });
  });

  it('is the fault of the operator behind a pooler without transactions', async () => {
    const error: unknown = await fingerprint('statement').catch((rejected: unknown) => rejected);
    expect(classifyError(error)).toMatchObject({
      type: 'PoolerUnsupported',
      owner: 'operator',
      message: expect.stringMatching(/statement pooling mode.*SOURCE_DATABASE_URL/),
    });
  });
});
