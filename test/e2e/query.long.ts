import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import pg from 'pg';
import { failoverWorkers } from '../setup/timeouts.ts';
import { waitFor } from '../setup/wait_for.ts';
import { type Stack, startStack } from './stack.ts';

let stack: Stack;
let headers: Record<string, string>;
beforeAll(async () => {
  stack = await startStack('query', {
    ...failoverWorkers,
    EXPORTD_QUERY_HEARTBEAT_TIMEOUT: failoverWorkers.EXPORTD_HEARTBEAT_TIMEOUT,
  });
  headers = { authorization: `Bearer ${await stack.newKey(['query:read'])}` };
});
afterAll(() => stack.stop());

const sendQuery = (query: string, fields: object = {}) =>
  stack.call('POST', '/query/', { query: { kind: 'DialectQuery', query }, ...fields }, headers);
const statusOf = async (id: string) =>
  (await stack.call('GET', `/query/${id}/`, undefined, headers)).body.query_status as Record<string, unknown>;
const waitUntilComplete = (id: string) =>
  waitFor(async () => {
    const status = await statusOf(id);
    return status.complete === true ? status : undefined;
  }, 'the query is complete');
/** Whether a statement that contains the text waits for a lock. */
const isWaitingForLock = async (text: string): Promise<boolean> =>
  (
    await stack.pool.query(
      `select from pg_stat_activity where datname = current_database() and backend_type = 'client backend'
         and wait_event_type = 'Lock' and strpos(query, $1) > 0`,
      [text],
    )
  ).rows.length > 0;
const bothAreWaiting = async () => (await isWaitingForLock('count(')) && isWaitingForLock('min(');

it('a background query survives its worker and can be cancelled', async () => {
  // A separate connection, since the pool's idle transactions time out on a busy machine.
  const lockHolder = new pg.Client({ connectionString: stack.databaseUrl, application_name: 'a test' });
  lockHolder.on('error', () => undefined);
  await lockHolder.connect();
  await lockHolder.query('begin; lock table public.events in access exclusive mode');
  const [survivor, cancelled] = [randomUUID(), randomUUID()];
  await sendQuery('select count() from events', { refresh: 'async', client_query_id: survivor });
  await sendQuery('select min(timestamp) from events', { refresh: 'async', client_query_id: cancelled });
  await waitFor(bothAreWaiting, 'both statements wait for the lock');
  await stack.killWorker();
  await waitFor(
    async () => !(await isWaitingForLock('events')),
    'PostgreSQL ended the statements of the killed process',
  );
  await stack.startWorker();
  await waitFor(bothAreWaiting, 'both statements wait for the lock again');
  expect((await stack.call('DELETE', `/query/${cancelled}/`, undefined, headers)).status).toBe(204);
  expect(await isWaitingForLock('min(')).toBe(false);
  await lockHolder.end();
  expect(await waitUntilComplete(survivor)).toMatchObject({ error: false, results: { results: [[0]] } });
  expect(await statusOf(cancelled)).toMatchObject({ complete: true, error: true });
  const cached = await sendQuery('select count() from events');
  expect(cached.body).toMatchObject({ is_cached: true, results: [[0]], query_status: null });
});
