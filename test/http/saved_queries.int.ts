import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { exportd } from '../cli/command_line.ts';
import { openApiHarness, type ApiHarness, type ApiResponse } from './api_harness.ts';

let api: ApiHarness;
let baseUrl: string;
beforeAll(async () => {
  api = await openApiHarness();
  await api.database.pool.query(
    `insert into events (team_id, uuid, event, distinct_id, person_id, properties, timestamp, inserted_at)
     select $1, gen_random_uuid(), event, 'ada', $2, '{"plan": "pro"}', now(), now()
     from unnest(array['bought', 'bought', 'left']) event`,
    [api.projectId, randomUUID()],
  );
  baseUrl = await api.listen();
});
afterAll(() => api.close());

const dialect = (query = 'select event, count() as n from events group by event order by n desc') => ({
  kind: 'DialectQuery',
  query,
});

/** Saves a query under a name that no other test has. */
const save = (name: string = randomUUID(), query: object = dialect()): Promise<ApiResponse> =>
  api.call('POST', 'saved_queries/', { name, query });

const pathOf = ({ body }: ApiResponse): string => `saved_queries/${String(body.id)}/`;

const run = (...command: readonly string[]) =>
  exportd({ EXPORTD_BASE_URL: baseUrl, EXPORTD_API_KEY: api.key }, ...command);

describe('a saved query', () => {
  it('is found by id and by name, renamed, changed and deleted, and the audit trail says by whom', async () => {
    const name = randomUUID();
    const saved = await save(name);
    expect(saved.status).toBe(201);
    expect(saved.headers.location).toMatch(new RegExp(`/${pathOf(saved)}$`));
    expect(saved.body).toEqual({
      id: expect.any(String),
      name,
      query: dialect(),
      version: 1,
      created_at: expect.any(String),
      created_by: 'ada@example.com',
      last_updated_at: expect.any(String),
      last_updated_by: 'ada@example.com',
    });
    expect((await api.call('GET', pathOf(saved))).body).toEqual(saved.body);
    const found = await api.call('GET', `saved_queries/?name=${name}`);
    expect(found.body).toMatchObject({ count: 1, results: [{ id: saved.body.id }] });
    const renamed = await api.call('PATCH', pathOf(saved), { name: `${name} 2`, version: 1 });
    expect(renamed.body).toMatchObject({ name: `${name} 2`, query: dialect(), version: 2 });
    const changed = await api.call('PATCH', pathOf(saved), { query: dialect('select 1'), version: 2 });
    expect(changed.body).toMatchObject({ name: `${name} 2`, query: dialect('select 1'), version: 3 });
    expect((await api.call('DELETE', pathOf(saved))).status).toBe(204);
    expect((await api.call('GET', pathOf(saved))).status).toBe(404);
    expect((await api.call('DELETE', pathOf(saved))).status).toBe(404);
    const { rows } = await api.database.pool.query<{ action: string; changes: unknown }>(
      `select action, changes::text as changes from exportd.audit_events where object = $1 order by id`,
      [`saved_queries/${String(saved.body.id)}`],
    );
    expect(rows.map(({ action }) => action)).toEqual([
      'saved_query.create',
      'saved_query.update',
      'saved_query.update',
      'saved_query.delete',
    ]);
    // The text of a query can hold anything.
    expect(JSON.stringify(rows)).toContain(name);
    expect(JSON.stringify(rows)).not.toContain('select');
  });

  it('keeps the change of the first of two people who save at once, and says so to the other', async () => {
    const saved = await save();
    const change = (text: string) => api.call('PATCH', pathOf(saved), { query: dialect(text), version: 1 });
    const outcomes = await Promise.all(['select 1', 'select 2', 'select 3'].map(change));
    expect(outcomes.map(({ status }) => status).toSorted()).toEqual([200, 409, 409]);
    const won = outcomes.find(({ status }) => status === 200);
    expect((await api.call('GET', pathOf(saved))).body).toEqual(won?.body);
    const lost = outcomes.find(({ status }) => status === 409);
    expect(lost?.body).toMatchObject({ code: 'conflict', attr: 'version' });
    expect(lost?.body.detail).toContain('ada@example.com saved version 2 at 20');
  });

  it('never takes the name of another one', async () => {
    const [name, other] = [randomUUID(), randomUUID()];
    await save(name);
    const again = await save(name, dialect('select 2'));
    expect(again.body).toMatchObject({ code: 'conflict', attr: 'name' });
    expect(again.body.detail).toContain(`"${name}": ada@example.com saved version 1 at 20`);
    const second = await save(other);
    const renamed = await api.call('PATCH', pathOf(second), { name, version: 1 });
    expect([renamed.status, renamed.body.attr]).toEqual([409, 'name']);
    expect((await api.call('GET', pathOf(second))).body).toEqual(second.body);
    // Names are of a project.
    const { key } = await api.newKey(api.otherProjectId);
    const elsewhere = await api.call(
      'POST',
      `/api/projects/${api.otherProjectId}/saved_queries/`,
      { name, query: dialect() },
      { authorization: `Bearer ${key}` },
    );
    expect(elsewhere.status).toBe(201);
  });

  it.each([
    ['no kind', { query: 'select 1' }, 'query__kind'],
    ['an unknown kind', { kind: 'PathsQuery' }, 'query__kind'],
    ['an unknown field', { ...dialect(), sql: 'select 1' }, 'query__sql'],
    [
      'an invalid series',
      { kind: 'TrendsQuery', series: [{ kind: 'EventsNode', math: 'most' }] },
      'query__series__0__math',
    ],
  ])('is refused with %s, in the field', async (_what, query, attr) => {
    const { status, body } = await save(undefined, query);
    expect([status, body.attr]).toEqual([400, attr]);
  });

  it.each(['', '  ', 'a\nb', 'x'.repeat(201)])('is refused with the name %j', async (name) => {
    const { status, body } = await save(name);
    expect([status, body.attr]).toEqual([400, 'name']);
  });

  it('can be changed by nothing but its version', async () => {
    const saved = await save();
    for (const body of [{ name: 'x' }, { name: 'x', version: 0 }, { version: '1', name: 'x' }])
      expect((await api.call('PATCH', pathOf(saved), body)).body).toMatchObject({ attr: 'version' });
    const ahead = await api.call('PATCH', pathOf(saved), { name: 'x', version: 7 });
    expect([ahead.status, ahead.body.attr]).toEqual([409, 'version']);
  });
});

describe('exportd query', () => {
  it('saves a query, runs it by its name, renames and deletes it', async () => {
    const name = `Events by name ${randomUUID()}`;
    const saved = await run('query', 'save', name, dialect().query);
    expect(saved).toMatchObject({ code: 0 });
    const ran = await run('query', 'run', name);
    expect(ran).toEqual({ code: 0, stdout: 'event   n\nbought  2\nleft    1\n', stderr: '' });
    const twice = await run('query', 'save', name, 'select 1 as one');
    expect(twice).toMatchObject({ code: 1, stderr: expect.stringContaining('--overwrite') });
    expect(await run('query', 'save', name, 'select 1 as one', '--overwrite')).toMatchObject({ code: 0 });
    expect((await run('query', 'run', name)).stdout).toBe('one\n1\n');
    await run('query', 'save', name, 'select 1 as one from events where 1 = 2', '--overwrite');
    expect((await run('query', 'run', name)).stdout).toBe('No rows.\n');
    expect(await run('query', 'rename', name, `${name} 2`)).toMatchObject({ code: 0 });
    expect((await run('query', 'list')).stdout).toContain(`${name} 2`);
    expect(await run('query', 'delete', `${name} 2`, '--yes')).toMatchObject({ code: 0 });
    const gone = await run('query', 'run', `${name} 2`);
    expect(gone).toMatchObject({ code: 1, stderr: expect.stringContaining('exportd query list') });
  });

  it('prints a row for each interval of a trend, and for each step of a funnel', async () => {
    const [trend, funnel] = [randomUUID(), randomUUID()];
    await save(trend, {
      kind: 'TrendsQuery',
      series: [{ kind: 'EventsNode', event: 'bought' }],
      dateRange: { date_from: '-1d' },
    });
    const series = ['bought', 'left'].map((event) => ({ kind: 'EventsNode', event }));
    await save(funnel, { kind: 'FunnelsQuery', series });
    const days = (await run('query', 'run', trend)).stdout.split('\n');
    expect(days[0]).toMatch(/^time +bought$/);
    expect(days.slice(1, 3).map((line) => line.split(/ +/).at(-1))).toEqual(['0', '2']);
    const steps = await run('query', 'run', funnel);
    expect(steps.stdout).toMatch(/^step +people .*\n1\. bought +1 +100 /);
  });
});
