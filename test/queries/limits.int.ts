import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createKey, createProject } from '../../src/http/accounts.ts';
import { until } from '../setup/until.ts';
import { openQueryStack, type QueryServer, type QueryStack } from './query_stack.ts';
import { statement } from './fake_kind.ts';

let stack: QueryStack;
beforeAll(async () => {
  stack = await openQueryStack();
  await stack.control.startWorker();
});
afterAll(() => stack.close());

describe('the limit of an hour', () => {
  let servers: [QueryServer, QueryServer];
  beforeAll(async () => {
    const usual = { EXPORTD_QUERIES_PER_HOUR: '120' };
    servers = [await stack.addServer(usual), await stack.addServer(usual)];
  });

  /** A project of its own, and what sends its requests. */
  async function newProject() {
    const project = await createProject(stack.pool, { name: randomUUID() });
    const newKey = async (scopes: string[]) =>
      (await createKey(stack.pool, { user_id: 1, project_id: project.id, scopes })).key;
    const key = await newKey(['query:read']);
    const post = (server: QueryServer, body: unknown, bearer = key, root = 'projects') =>
      server.call('POST', `/api/${root}/${project.id}/query/`, body, bearer);
    return { project, key, newKey, post };
  }
  const body = { query: statement('select 1') };

  it('admits 120 requests that two servers share, and refuses the next with a true Retry-After', async () => {
    const { project, post } = await newProject();
    const answers = await Promise.all(
      Array.from({ length: 130 }, (_, index) =>
        post(servers[index % 2] ?? servers[0], body, undefined, index % 3 ? 'projects' : 'environments'),
      ),
    );
    const counts = (status: number) => answers.filter((answer) => answer.status === status).length;
    expect([counts(200), counts(429)]).toEqual([120, 10]);
    const left = answers
      .filter(({ status }) => status === 200)
      .map(({ headers }) => Number(headers['x-ratelimit-remaining']));
    expect(left.sort((one, other) => one - other)).toEqual(Array.from({ length: 120 }, (_, index) => index));

    /** The next moment at which a request is free, and that of the clock. */
    const times = async () => {
      const { rows } = await stack.pool.query<{ resets_at: string; now: string }>(
        `select min(requested_at) + interval '1 hour' as resets_at, clock_timestamp() as now
         from exportd.query_requests where team_id = $1`,
        [project.id],
      );
      const { resets_at = '', now = '' } = rows[0] ?? {};
      return { resetsAt: Date.parse(resets_at), now: Date.parse(now) };
    };
    const pass = (time: string) =>
      stack.pool.query(
        'update exportd.query_requests set requested_at = requested_at - $2::interval where team_id = $1',
        [project.id, time],
      );
    await pass('55 minutes');
    const before = await times();
    const refused = await post(servers[0], body);
    const after = await times();
    const seconds = Number(refused.headers['retry-after']);
    expect(refused.body).toEqual({
      type: 'throttled',
      code: 'throttled',
      detail: expect.stringContaining(`available in ${seconds} seconds`),
      attr: null,
    });
    expect([refused.headers['x-ratelimit-limit'], refused.headers['x-ratelimit-remaining']]).toEqual([
      '120',
      '0',
    ]);
    expect(Number(refused.headers['x-ratelimit-reset'])).toBe(Math.ceil(after.resetsAt / 1_000));
    // The database reads its clock in microseconds, the test in milliseconds.
    expect(seconds).toBeLessThanOrEqual(Math.ceil((before.resetsAt - before.now + 1) / 1_000));
    expect(seconds).toBeGreaterThanOrEqual(Math.ceil((after.resetsAt - after.now - 1) / 1_000));
    // As long as a client waits that believes the header.
    await pass(`${seconds} seconds`);
    expect((await post(servers[1], body)).status).toBe(200);
  });

  it('counts whatever has a key that may ask, and nothing else', async () => {
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

  it('of another server that was lowered holds for what was admitted before, too', async () => {
    const { post } = await newProject();
    for (let sent = 0; sent < 5; sent++) await post(servers[0], body);
    const strict = await stack.addServer({ EXPORTD_QUERIES_PER_HOUR: '3' });
    const refused = await post(strict, body);
    expect([refused.status, refused.headers['x-ratelimit-remaining']]).toEqual([429, '0']);
    expect((await post(servers[0], body)).headers['x-ratelimit-remaining']).toBe('114');
  });
});

describe('an answer', () => {
  const rows = (count: number) =>
    statement(`select n, '${randomUUID()}' from generate_series(1, ${count}) n`);

  it('has at most 10,000 rows, also in the background, and says where to get more', async () => {
    const cut = { hasMore: true, notice: expect.stringContaining('use a batch export') };
    const blocking = await stack.server.post(rows(25_000));
    expect(blocking.body).toMatchObject(cut);
    expect(blocking.body.results).toHaveLength(10_000);
    const whole = await stack.server.post(rows(10_000));
    expect(whole.body).toMatchObject({ hasMore: false, notice: null });
    expect(whole.body.results).toHaveLength(10_000);
    const id = randomUUID();
    await stack.server.post(rows(10_001), { refresh: 'async', client_query_id: id });
    const status = await until(async () => {
      const { query_status } = (await stack.server.call('GET', `query/${id}`)).body;
      return query_status?.complete === true ? query_status : undefined;
    }, 'the answer');
    const answer = status.results as Record<string, unknown>;
    expect(answer).toMatchObject(cut);
    expect(answer.results).toHaveLength(10_000);
  });

  it('that is too large is refused before it is read to its end', async () => {
    const small = await stack.addServer({ EXPORTD_QUERY_MAX_RESULT_SIZE: '100000B' });
    const wide = await small.post(statement("select repeat('x', 1000) from generate_series(1, 1000000)"));
    expect([wide.status, wide.body.code]).toEqual([400, 'result_too_large']);
    expect(wide.body.detail).toContain('larger than 100000 bytes');
    expect((await small.post(statement("select repeat('x', 90000)"))).status).toBe(200);
  });

  it('that takes too long is ended in PostgreSQL', async () => {
    const hasty = await stack.addServer({ EXPORTD_QUERY_TIMEOUT: '300ms' });
    const { status, body } = await hasty.post(statement('select pg_sleep(60)'));
    expect([status, body.code]).toEqual([400, 'query_timeout']);
    expect(body.detail).toContain('longer than 0.3 s');
    expect(await stack.statements()).toBe(0);
  });

  it('is read only', async () => {
    for (const text of ['delete from public.events returning 1', "select nextval('s')", 'select 1; select 2'])
      expect((await stack.server.post(statement(text))).status).toBe(500);
    const writing = await stack.server.post(statement('select lo_creat(-1)'));
    expect(writing.status).toBe(500);
  });
});

it('a body that is too large is refused', async () => {
  const strict = await stack.addServer({ EXPORTD_HTTP_MAX_BODY_SIZE: '2000B' });
  const { status, body } = await strict.post(statement(`select '${'x'.repeat(2_000)}'`));
  expect([status, body.code]).toEqual([413, 'payload_too_large']);
});
