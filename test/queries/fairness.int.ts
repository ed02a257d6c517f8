import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { waitFor } from '../setup/wait_for.ts';
import { openQueryHarness, type QueryHarness, type QueryServer } from './query_harness.ts';
import { statement } from './fake_kind.ts';

let harness: QueryHarness;
let quick: object;
beforeAll(async () => {
  harness = await openQueryHarness({
    EXPORTD_QUERY_SLOTS: '3',
    EXPORTD_QUERY_PROJECT_SLOTS: '2',
    EXPORTD_QUERY_KEY_SLOTS: '2',
  });
  quick = { query: statement('select 1'), refresh: 'force_blocking' };
});
afterEach(async () => {
  await waitFor(async () => (await harness.statements()) === 0, 'the end of all statements');
});
afterAll(() => harness.close());

const heavy = (more: object = {}) => ({
  query: statement(`select pg_sleep(600), '${randomUUID()}'`),
  ...more,
});
const queryPath = (project: number) => `/api/projects/${project}/query/`;
const postAsOther = (server: QueryServer, body: object) =>
  server.call('POST', queryPath(harness.otherProjectId), body, harness.otherKey);
const statusOf = async (id: string) =>
  (await harness.server.call('GET', `query/${id}`)).body.query_status ?? undefined;

const executionOf = async (id: string) => {
  const { rows } = await harness.pool.query<{ execution_id: string }>(
    'select execution_id from exportd.queries where id = $1',
    [id],
  );
  return rows[0]?.execution_id;
};

/** Clients of a listening server that can disconnect. */
async function createClients(server: QueryServer) {
  const url = await server.app.listen({ host: '127.0.0.1', port: 0 });
  const open = new Set<AbortController>();
  return {
    /** Sends a request and returns a function that closes its connection. */
    send: (path: string, key: string, body?: object): (() => void) => {
      const connection = new AbortController();
      open.add(connection);
      void fetch(url + path, {
        method: body ? 'POST' : 'GET',
        headers: { authorization: `Bearer ${key}`, ...(body && { 'content-type': 'application/json' }) },
        body: body ? JSON.stringify(body) : null,
        signal: connection.signal,
      }).catch(() => undefined);
      return () => connection.abort();
    },
    disconnect: () => {
      for (const connection of open) connection.abort();
    },
  };
}

describe('twenty heavy queries of one project', () => {
  it('leave a slot to another project, and end in PostgreSQL when their clients disconnect', async () => {
    const server = await harness.addServer();
    const clients = await createClients(server);
    for (let sent = 0; sent < 20; sent++) clients.send(queryPath(harness.projectId), harness.key, heavy());
    await waitFor(async () => (await harness.statements()) >= 2, 'two running queries');
    expect((await postAsOther(server, quick)).status).toBe(200);
    expect(await harness.statements()).toBe(2);
    clients.disconnect();
    await waitFor(async () => (await harness.statements()) === 0, 'the cancellation of the statements');
    expect((await server.call('POST', 'query/', quick)).status).toBe(200);
  });

  it('in the background leave a slot of the worker to another project', async () => {
    await harness.control.startWorker();
    const ids = Array.from({ length: 20 }, () => randomUUID());
    await Promise.all(
      ids.map((id) => harness.server.post(heavy().query, { refresh: 'async', client_query_id: id })),
    );
    await harness.running(2);
    const { body } = await postAsOther(harness.server, { ...quick, refresh: 'force_async' });
    const path = `${queryPath(harness.otherProjectId)}${String(body.query_status?.id)}/`;
    const done = await waitFor(async () => {
      const read = await harness.server.call('GET', path, undefined, harness.otherKey);
      return read.body.query_status?.complete === true ? read.body.query_status : undefined;
    }, 'the query of the other project');
    expect(done).toMatchObject({ error: false, results: { results: [[1]] } });
    const statuses = await Promise.all(ids.map(statusOf));
    expect(statuses.filter((status) => status?.query_progress !== null)).toHaveLength(2);
    expect(statuses.filter((status) => status?.pickup_time === null)).toHaveLength(18);
    await Promise.all(ids.map((id) => harness.server.call('DELETE', `query/${id}`)));
    await harness.control.stopWorker();
  });
});

describe('a full queue', () => {
  it('of a project responds 429 with Retry-After to that project only, also in the background', async () => {
    const server = await harness.addServer({ EXPORTD_QUERY_PROJECT_QUEUE_SIZE: '2' });
    const clients = await createClients(server);
    const ids = Array.from({ length: 4 }, () => randomUUID());
    for (const id of ids)
      clients.send(queryPath(harness.projectId), harness.key, heavy({ client_query_id: id }));
    await waitFor(async () => (await Promise.all(ids.map(statusOf))).every(Boolean), 'four requests');
    await harness.running(2);
    const rejected = await server.call('POST', 'query/', quick);
    expect([rejected.status, rejected.body]).toMatchObject([
      429,
      { type: 'throttled', code: 'throttled', detail: expect.stringContaining('2 slots') },
    ]);
    expect(Number(rejected.headers['retry-after'])).toBeGreaterThanOrEqual(1);
    const draft = await server.call('GET', 'query/draft_sql?prompt=signups+per+day');
    expect([draft.status, draft.body.code]).toEqual([429, 'throttled']);
    expect((await postAsOther(server, quick)).status).toBe(200);
    clients.disconnect();

    const queued = { ...quick, refresh: 'force_async' };
    for (const expected of [200, 200, 429])
      expect((await server.call('POST', 'query/', queued)).status).toBe(expected);
    expect((await postAsOther(server, queued)).status).toBe(200);
    await harness.pool.query('delete from exportd.queries');
  });

  it('of all projects responds 503 with Retry-After', async () => {
    const server = await harness.addServer({
      EXPORTD_QUERY_SLOTS: '1',
      EXPORTD_QUERY_QUEUE_TIMEOUT: '1ms',
    });
    const clients = await createClients(server);
    clients.send(queryPath(harness.projectId), harness.key, heavy());
    await harness.running();
    const busy = await postAsOther(server, quick);
    expect([busy.status, busy.body.type, Number(busy.headers['retry-after']) >= 1]).toEqual([
      503,
      'unavailable',
      true,
    ]);
    clients.disconnect();
  });
});

describe('a client that disconnects', () => {
  it('removes its query from the queue', async () => {
    const server = await harness.addServer();
    const clients = await createClients(server);
    for (let sent = 0; sent < 2; sent++) clients.send(queryPath(harness.projectId), harness.key, heavy());
    await harness.running(2);
    const id = randomUUID();
    const disconnect = clients.send(
      queryPath(harness.projectId),
      harness.key,
      heavy({ client_query_id: id }),
    );
    await waitFor(async () => (await statusOf(id))?.complete === false, 'the waiting query');
    expect(await statusOf(id)).toMatchObject({ pickup_time: null, query_progress: null });
    disconnect();
    await waitFor(async () => (await statusOf(id))?.complete === true, 'its end');
    expect(await statusOf(id)).toMatchObject({
      error: true,
      error_message: 'The client that waited for the answer disconnected.',
    });
    expect(await harness.statements()).toBe(2);
    clients.disconnect();
  });

  it('leaves its query to another request that waits for it', async () => {
    const clients = await createClients(await harness.addServer());
    const id = randomUUID();
    const release = await harness.lockPersons();
    const query = statement(`select count(*)::integer, '${id}' from public.persons`);
    const disconnect = clients.send(queryPath(harness.projectId), harness.key, {
      query,
      client_query_id: id,
    });
    await harness.running();
    const first = await executionOf(id);
    const { rows } = await harness.pool.query<{ now: string }>('select clock_timestamp()::text as now');
    const second = harness.server.post(query, { client_query_id: id });
    await waitFor(async () => {
      const { rowCount } = await harness.pool.query(
        `select from pg_stat_activity where datname = current_database() and query_start > $1
           and query like 'select team_id, id, execution_id, cache_key%'`,
        [rows[0]?.now],
      );
      return rowCount;
    }, 'the second request reads the status of the first');
    disconnect();
    await waitFor(async () => (await executionOf(id)) !== first, 'another execution of the query');
    await release();
    expect((await second).body.results).toEqual([[0, id]]);
  });
});

it('requests that wait for the count of their project leave connections to another', async () => {
  const server = await harness.addServer();
  await server.call('POST', 'query/', quick);
  const holder = await harness.pool.connect();
  await holder.query('begin');
  await holder.query('select from exportd.query_request_counts where team_id = $1 for update', [
    harness.projectId,
  ]);
  // More than the server has connections.
  const counted = Array.from({ length: 15 }, () => server.call('POST', 'query/', quick));
  await waitFor(async () => {
    const { rowCount } = await harness.pool.query(
      `select from pg_stat_activity where datname = current_database() and query like '%admit_query_request%'
         and wait_event_type = 'Lock'`,
    );
    return rowCount;
  }, 'a request that waits');
  const other = await Promise.race([postAsOther(server, quick), Promise.all(counted)]);
  expect(other).toMatchObject({ status: 200 });
  await holder.query('commit');
  holder.release();
  expect((await Promise.all(counted)).map(({ status }) => status)).toEqual(counted.map(() => 200));
});

it('two hundred drafts at once count against the hourly limit of their project, and fail no other', async () => {
  // Those of the tests above.
  await harness.pool.query('truncate exportd.query_requests');
  const server = await harness.addServer({ EXPORTD_QUERIES_PER_HOUR: '20' });
  const draft = () =>
    server.call(
      'GET',
      `${queryPath(harness.otherProjectId)}draft_sql?prompt=events+per+day`,
      undefined,
      harness.otherKey,
    );
  const drafts = Array.from({ length: 200 }, draft);
  expect((await server.call('POST', 'query/', quick)).status).toBe(200);
  const rejected = (await Promise.all(drafts)).filter(({ status }) => status !== 200);
  expect(rejected).toHaveLength(180);
  for (const { status, headers } of rejected) {
    expect([status, 'retry-after' in headers]).toEqual([429, true]);
    expect(headers['x-ratelimit-limit']).toBe('20');
  }
});
