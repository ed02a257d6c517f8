import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { waitFor } from '../setup/wait_for.ts';
import { openQueryHarness, type QueryHarness, type QueryServer } from './query_harness.ts';
import { statement } from './fake_kind.ts';
import { createKey } from '../../src/http/accounts/api_keys.ts';
import { createProject } from '../../src/http/accounts/projects.ts';

let harness: QueryHarness;
beforeAll(async () => {
  harness = await openQueryHarness();
  await harness.control.startWorker();
});
afterAll(() => harness.close());

describe('the hourly limit', () => {
  let servers: [QueryServer, QueryServer];
  beforeAll(async () => {
    // All requests arrive together, and none may be rejected by the queue.
    const defaults = { EXPORTD_QUERIES_PER_HOUR: '120', EXPORTD_QUERY_PROJECT_QUEUE_SIZE: '130' };
    servers = [await harness.addServer(defaults), await harness.addServer(defaults)];
  });

  /** A new project, and a function that sends its requests. */
  async function newProject() {
    const project = await createProject(harness.pool, { name: randomUUID() });
    const newKey = async (scopes: string[]) =>
      (await createKey(harness.pool, { user_id: 1, project_ids: [project.id], scopes })).key;
    const key = await newKey(['query:read']);
    const post = (server: QueryServer, body: unknown, bearer = key, root = 'projects') =>
      server.call('POST', `/api/${root}/${project.id}/query/`, body, bearer);
    return { project, key, newKey, post };
  }
  const body = { query: statement('select 1') };

  it('admits 120 requests over two servers and rejects the next with a correct Retry-After', async () => {
    const { project, post } = await newProject();
    const responses = await Promise.all(
      Array.from({ length: 130 }, (_, index) =>
        post(servers[index % 2] ?? servers[0], body, undefined, index % 3 ? 'projects' : 'environments'),
      ),
    );
    const counts = (status: number) => responses.filter((response) => response.status === status).length;
    expect([counts(200), counts(429)]).toEqual([120, 10]);
    const left = responses
      .filter(({ status }) => status === 200)
      .map(({ headers }) => Number(headers['x-ratelimit-remaining']));
    expect(left.sort((one, other) => one - other)).toEqual(Array.from({ length: 120 }, (_, index) => index));

    /** When the next request is free, and the current time of the database. */
    const times = async () => {
      const { rows } = await harness.pool.query<{ resets_at: string; now: string }>(
        `select min(requested_at) + interval '1 hour' as resets_at, clock_timestamp() as now
         from exportd.query_requests where team_id = $1`,
        [project.id],
      );
      const { resets_at = '', now = '' } = rows[0] ?? {};
      return { resetsAt: Date.parse(resets_at), now: Date.parse(now) };
    };
    const pass = (time: string) =>
      harness.pool.query(
        'update exportd.query_requests set requested_at = requested_at - $2::interval where team_id = $1',
        [project.id, time],
      );
    await pass('55 minutes');
    const before = await times();
    const rejected = await post(servers[0], body);
    const after = await times();
    const seconds = Number(rejected.headers['retry-after']);
    expect(rejected.body).toEqual({
      type: 'throttled',
      code: 'throttled',
      detail: expect.stringContaining(`Retry in ${seconds} seconds`),
      attr: null,
    });
    expect([rejected.headers['x-ratelimit-limit'], rejected.headers['x-ratelimit-remaining']]).toEqual([
      '120',
      '0',
    ]);
    expect(Number(rejected.headers['x-ratelimit-reset'])).toBe(Math.ceil(after.resetsAt / 1_000));
    // The database clock has microseconds, that of the test milliseconds.
    expect(seconds).toBeLessThanOrEqual(Math.ceil((before.resetsAt - before.now + 1) / 1_000));
    expect(seconds).toBeGreaterThanOrEqual(Math.ceil((after.resetsAt - after.now - 1) / 1_000));
    // The wait of a client that follows the header.
    await pass(`${seconds} seconds`);
    expect((await post(servers[1], body)).status).toBe(200);
  });

  it('counts every request with an authorized key and nothing else', async () => {
    const { key, newKey, project, post } = await newProject();
    const remaining = async (
      sent: Promise<{ headers: Readonly<Record<string, unknown>>; status: number }>,
    ) => {
      const { status, headers } = await sent;
      return [status, headers['x-ratelimit-remaining']];
    };
    const [server] = servers;
    const path = `/api/projects/${project.id}/query`;
    expect(await remaining(post(server, body))).toEqual([200, '119']);
    expect(await remaining(post(server, { query: { kind: 'Nonsense' } }))).toEqual([400, '118']);
    expect(await remaining(post(server, 'no json'))).toEqual([415, '117']);
    expect(await remaining(post(server, body, await newKey(['batch_export:read'])))).toEqual([
      403,
      undefined,
    ]);
    expect(await remaining(post(server, body, 'nobody'))).toEqual([401, undefined]);
    expect(await remaining(server.call('GET', `${path}/some`, undefined, key))).toEqual([404, undefined]);
    expect(await remaining(server.call('DELETE', `${path}/some`, undefined, key))).toEqual([404, undefined]);
    expect(await remaining(server.call('POST', `${path}/check_auth_for_async/`, undefined, key))).toEqual([
      200,
      undefined,
    ]);
    expect(await remaining(post(server, body))).toEqual([200, '116']);
  });

  it('of a server with a lower setting includes earlier requests', async () => {
    const { post } = await newProject();
    for (let sent = 0; sent < 5; sent++) await post(servers[0], body);
    const strict = await harness.addServer({ EXPORTD_QUERIES_PER_HOUR: '3' });
    const rejected = await post(strict, body);
    expect([rejected.status, rejected.headers['x-ratelimit-remaining']]).toEqual([429, '0']);
    expect((await post(servers[0], body)).headers['x-ratelimit-remaining']).toBe('114');
  });
});

describe('a result', () => {
  const rows = (count: number) =>
    statement(`select n, '${randomUUID()}' from generate_series(1, ${count}) n`);

  it('has at most 10,000 rows, also in the background, with a notice', async () => {
    const cut = { hasMore: true, notice: expect.stringContaining('Use a batch export') };
    const blocking = await harness.server.post(rows(25_000));
    expect(blocking.body).toMatchObject(cut);
    expect(blocking.body.results).toHaveLength(10_000);
    const whole = await harness.server.post(rows(10_000));
    expect(whole.body).toMatchObject({ hasMore: false, notice: null });
    expect(whole.body.results).toHaveLength(10_000);
    const id = randomUUID();
    await harness.server.post(rows(10_001), { refresh: 'async', client_query_id: id });
    const status = await waitFor(async () => {
      const { query_status } = (await harness.server.call('GET', `query/${id}`)).body;
      return query_status?.complete === true ? query_status : undefined;
    }, 'the result');
    const response = status.results as Record<string, unknown>;
    expect(response).toMatchObject(cut);
    expect(response.results).toHaveLength(10_000);
  });

  it('is rejected while it is read if it is too large', async () => {
    const small = await harness.addServer({ EXPORTD_QUERY_MAX_RESULT_SIZE: '100000B' });
    const wide = await small.post(statement("select repeat('x', 1000) from generate_series(1, 1000000)"));
    expect([wide.status, wide.body.code]).toEqual([400, 'result_too_large']);
    expect(wide.body.detail).toContain('larger than 100000 bytes');
    expect((await small.post(statement("select repeat('x', 90000)"))).status).toBe(200);
  });

  it('is cancelled in PostgreSQL if it takes too long', async () => {
    const hasty = await harness.addServer({ EXPORTD_QUERY_TIMEOUT: '300ms' });
    const { status, body } = await hasty.post(statement('select pg_sleep(60)'));
    expect([status, body.code]).toEqual([400, 'query_timeout']);
    expect(body.detail).toContain('longer than 0.3 s');
    expect(await harness.statements()).toBe(0);
  });

  it('is computed read-only', async () => {
    for (const text of ['delete from public.events returning 1', "select nextval('s')", 'select 1; select 2'])
      expect((await harness.server.post(statement(text))).status).toBe(500);
    const writing = await harness.server.post(statement('select lo_creat(-1)'));
    expect(writing.status).toBe(500);
  });
});

it('a body that is too large is rejected', async () => {
  const strict = await harness.addServer({ EXPORTD_HTTP_MAX_BODY_SIZE: '2000B' });
  const { status, body } = await strict.post(statement(`select '${'x'.repeat(2_000)}'`));
  expect([status, body.code]).toEqual([413, 'payload_too_large']);
});
