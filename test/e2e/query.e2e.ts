import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import pg from 'pg';
import { createKey } from '../../src/http/accounts.ts';
import { until } from '../setup/until.ts';
import { startStack, type Stack } from './stack.ts';

let stack: Stack;
let headers: Record<string, string>;
beforeAll(async () => {
  stack = await startStack('query', { EXPORTD_QUERY_HEARTBEAT_TIMEOUT: '3s' });
  const { key } = await createKey(stack.pool, {
    user_id: 1,
    project_id: stack.projectId,
    scopes: ['query:read'],
  });
  headers = { authorization: `Bearer ${key}` };
});
afterAll(() => stack.stop());

const ask = (query: string, members: object = {}) =>
  stack.call('POST', '/query/', { query: { kind: 'DialectQuery', query }, ...members }, headers);
const statusOf = async (id: string) =>
  (await stack.call('GET', `/query/${id}/`, undefined, headers)).body.query_status as Record<string, unknown>;
const completed = (id: string) =>
  until(async () => {
    const status = await statusOf(id);
    return status.complete === true ? status : undefined;
  }, 'the query to complete');
/** Whether a statement with this in its text waits for a lock. */
const waits = async (text: string): Promise<boolean> =>
  (
    await stack.pool.query(
      `select from pg_stat_activity where datname = current_database() and backend_type = 'client backend'
         and wait_event_type = 'Lock' and strpos(query, $1) > 0`,
      [text],
    )
  ).rows.length > 0;
const bothWait = async () => (await waits('count(')) && waits('min(');

it('a query in the background survives its worker, and can be cancelled', async () => {
  // Not one of the pool, whose transactions may not be idle for as long as a busy machine takes.
  const holder = new pg.Client({ connectionString: stack.databaseUrl, application_name: 'a test' });
  holder.on('error', () => undefined);
  await holder.connect();
  await holder.query('begin; lock table public.events in access exclusive mode');
  const [survivor, cancelled] = [randomUUID(), randomUUID()];
  await ask('select count() from events', { refresh: 'async', client_query_id: survivor });
  await ask('select min(timestamp) from events', { refresh: 'async', client_query_id: cancelled });
  await until(bothWait, 'both statements');
  await stack.killWorker();
  await until(async () => !(await waits('events')), 'PostgreSQL to end the statements of a lost process');
  await stack.startWorker();
  await until(bothWait, 'both statements again');
  expect((await stack.call('DELETE', `/query/${cancelled}/`, undefined, headers)).status).toBe(204);
  expect(await waits('min(')).toBe(false);
  await holder.end();
  expect(await completed(survivor)).toMatchObject({ error: false, results: { results: [[0]] } });
  expect(await statusOf(cancelled)).toMatchObject({ complete: true, error: true });
  const cached = await ask('select count() from events');
  expect(cached.body).toMatchObject({ is_cached: true, results: [[0]], query_status: null });
});
