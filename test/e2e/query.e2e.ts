import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { createKey } from '../../src/http/accounts.ts';
import { until } from '../setup/until.ts';
import { startStack, type Stack } from './stack.ts';

let stack: Stack;
let headers: Record<string, string>;
beforeAll(async () => {
  stack = await startStack('query', { EXPORTD_QUERY_HEARTBEAT_TIMEOUT_MS: '3000' });
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
const waitingStatements = async () =>
  (
    await stack.pool.query(
      `select from pg_stat_activity where datname = current_database() and backend_type = 'client backend'
         and wait_event_type = 'Lock'`,
    )
  ).rows.length;

it('a query in the background survives its worker, and can be cancelled', async () => {
  const holder = await stack.pool.connect();
  await holder.query('begin; lock table public.events in access exclusive mode');
  const [survivor, cancelled] = [randomUUID(), randomUUID()];
  await ask('select count() from events', { refresh: 'async', client_query_id: survivor });
  await ask('select count() + 1 from events', { refresh: 'async', client_query_id: cancelled });
  await until(async () => (await waitingStatements()) === 2, 'both statements');
  await stack.killWorker();
  await until(
    async () => (await waitingStatements()) === 0,
    'PostgreSQL to end the statements of a lost process',
  );
  await stack.startWorker();
  await until(async () => (await waitingStatements()) === 2, 'both statements again');
  expect((await stack.call('DELETE', `/query/${cancelled}/`, undefined, headers)).status).toBe(204);
  expect(await waitingStatements()).toBe(1);
  await holder.query('commit');
  holder.release();
  expect(await completed(survivor)).toMatchObject({ error: false, results: { results: [[0]] } });
  expect(await statusOf(cancelled)).toMatchObject({ complete: true, error: true });
  const cached = await ask('select count() from events');
  expect(cached.body).toMatchObject({ is_cached: true, results: [[0]], query_status: null });
});
