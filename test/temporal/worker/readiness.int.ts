import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { readSettings } from '../../../src/config/settings.ts';
import { storeProcessFault } from '../../../src/failures/operator_faults.ts';
import { createPool } from '../../../src/journal/database.ts';
import { createSource } from '../../../src/source/postgres_source.ts';
import { createClient, type ClientConnection } from '../../../src/temporal/connections.ts';
import { readWorkerReadiness } from '../../../src/temporal/worker/monitoring.ts';
import { fromSetUp } from '../../setup/environment.ts';
import { useTestDatabase } from '../../setup/use_test_database.ts';
import { waitFor } from '../../setup/wait_for.ts';

const database = useTestDatabase();
const settingsWith = (more: Record<string, string> = {}) =>
  readSettings({
    DATABASE_URL: database.url,
    TEMPORAL_ADDRESS: fromSetUp('EXPORTD_TEST_TEMPORAL_ADDRESS'),
    EXPORTD_TASK_QUEUE_PREFIX: `test-${randomUUID()}`,
    ...more,
  });
const nobody = '127.0.0.1:1';
const running = new AbortController().signal;

let temporal: ClientConnection;
beforeAll(async () => {
  temporal = await createClient(settingsWith());
});
afterAll(() => temporal.close());

/** The readiness while all servers run. On a busy machine a probe may exceed the 4 seconds that it has. */
const readinessOf = (dependencies: Parameters<typeof readWorkerReadiness>[0]) =>
  waitFor(async () => {
    const readiness = await readWorkerReadiness(dependencies);
    const { control_database, source, temporal: server } = readiness;
    return [control_database, source, server].every((state) => state === 'ok') ? readiness : null;
  }, 'every server responds in time');

describe('the readiness of a worker', () => {
  it('says that a worker has not started, and what the operator has to fix', async () => {
    const settings = settingsWith();
    const source = createSource({ sourceUrl: database.url, settings });
    await storeProcessFault(database.pool, {
      type: 'UndefinedTable',
      message: 'The source lacks a relation.',
    });
    const { pool } = database;
    const { client } = temporal;
    const dependencies = { pool, source, client, settings, stopping: running };
    const ok = { control_database: 'ok', source: 'ok', temporal: 'ok' };
    expect(await readinessOf({ ...dependencies, identity: () => undefined })).toEqual({
      ...ok,
      status: 'unavailable',
      polling: 'The workers have not started yet.',
      needs_newer: null,
      operator_faults: [expect.objectContaining({ type: 'UndefinedTable', waiting_runs: 0 })],
    });
    expect(await readinessOf({ ...dependencies, identity: () => 'another worker' })).toMatchObject({
      ...ok,
      polling: 'Temporal has no poll of this worker.',
    });
    const stopping = AbortSignal.abort();
    expect(await readinessOf({ ...dependencies, stopping, identity: () => 'a' })).toMatchObject({
      ...ok,
      polling: 'The worker is shutting down.',
    });
    await source.close();
  });

  it('names every server that does not respond', async () => {
    const settings = settingsWith({ TEMPORAL_ADDRESS: nobody, EXPORTD_TEMPORAL_REQUEST_TIMEOUT: '1s' });
    const url = `postgres://${nobody}/none`;
    const pool = createPool(url, { max: 1, connectTimeoutMs: 1_000 });
    const source = createSource({ sourceUrl: url, settings });
    const { client, close } = await createClient(settings);
    const readiness = await readWorkerReadiness({
      pool,
      source,
      client,
      settings,
      identity: () => undefined,
      stopping: running,
    });
    expect(readiness).toEqual({
      status: 'unavailable',
      control_database: 'The control database cannot be reached.',
      source: 'The source refuses connections.',
      temporal: 'Temporal cannot be reached.',
      polling: 'Temporal cannot be reached.',
      needs_newer: null,
      operator_faults: null,
    });
    await Promise.all([pool.end(), source.close(), close()]);
  });
});
