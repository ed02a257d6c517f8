import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createKey } from '../../src/http/accounts/api_keys.ts';
import { createUser } from '../../src/http/accounts/users.ts';
import { openApiHarness, type ApiHarness } from './api_harness.ts';

let api: ApiHarness;
beforeAll(async () => {
  api = await openApiHarness();
  await api.database.pool.query(
    `insert into events (team_id, uuid, event, distinct_id, properties, timestamp, inserted_at)
     select $1, gen_random_uuid(), event, 'ada', '{"plan": "pro"}', now(), now()
     from unnest(array['bought', 'bought', 'left']) event`,
    [api.projectId],
  );
  await api.database.pool.query(
    `insert into persons (team_id, id, properties, created_at, updated_at)
     values ($1, gen_random_uuid(), '{"email": "ada@example.com"}', now(), now())`,
    [api.projectId],
  );
});
afterAll(() => api.close());

const check = (query: string) => api.call('POST', 'console/query/check/', { query });

describe('the vocabulary of editors', () => {
  it('has the tables of the project, the functions and the keywords of the dialect', async () => {
    const { status, body } = await api.call('GET', 'console/query/vocabulary/');
    const { tables, functions, keywords } = body as {
      tables: { name: string; fields: { name: string }[] }[];
      functions: { name: string }[];
      keywords: string[];
    };
    expect(status).toBe(200);
    expect(tables.map(({ name }) => name)).toEqual(expect.arrayContaining(['events', 'persons', 'sessions']));
    expect(tables[0]?.fields.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['event', 'properties', 'person.properties']),
    );
    expect(functions.map(({ name }) => name)).toEqual(expect.arrayContaining(['count', 'toDate']));
    expect(keywords).toEqual(expect.arrayContaining(['SELECT', 'CASE', 'DESC']));
  });

  it('has the names in the newest rows', async () => {
    expect((await api.call('GET', 'console/query/names/')).body).toEqual({
      events: ['bought', 'left'],
      event_properties: ['plan'],
      person_properties: ['email'],
    });
  });
});

describe('the check of a query', () => {
  it('accepts what runs, also with filters and variables', async () => {
    for (const query of [
      'select event, count() from events group by event',
      'select count() from events where {filters}',
      'select {variables.plan}',
      'select avg(properties.price) from events',
    ])
      expect((await check(query)).body).toEqual({ error: null });
  });

  it('says what is wrong and where', async () => {
    expect((await check("select '😀',\n  evnt from events")).body).toEqual({
      error: {
        detail: expect.stringContaining('event'),
        line: 2,
        column: 3,
        offset: 15,
        length: 4,
      },
    });
    expect((await check('select event from')).body).toMatchObject({ error: { offset: 17, length: 0 } });
  });

  it('does not count as a query', async () => {
    const limitOf = async () =>
      Number(
        (await api.call('POST', 'query/', { query: { kind: 'DialectQuery', query: 'select 1' } })).headers[
          'x-ratelimit-remaining'
        ],
      );
    const before = await limitOf();
    await check('select 1');
    await api.call('GET', 'console/query/vocabulary/');
    expect(await limitOf()).toBe(before - 1);
  });
});

it('is for keys that may query', async () => {
  const { key } = await api.newKey(api.projectId, ['batch_export:write']);
  const authorization = `Bearer ${key}`;
  for (const path of ['vocabulary', 'names'])
    expect((await api.call('GET', `console/query/${path}/`, undefined, { authorization })).status).toBe(403);
  expect(
    (await api.call('POST', 'console/query/check/', { query: 'select 1' }, { authorization })).status,
  ).toBe(403);
});

describe('a source that cannot be read', () => {
  const requests = (other: ApiHarness) =>
    Promise.all([
      other.call('POST', 'query/', { query: { kind: 'DialectQuery', query: 'select count() from events' } }),
      other.call('POST', 'console/query/check/', { query: 'select count() from events' }),
      other.call('GET', 'console/query/vocabulary/'),
    ]);
  const unreachable = 'postgres://role:password@127.0.0.1:1/none';

  it.each([
    [
      'that refuses connections is not called the control database',
      { SOURCE_DATABASE_URL: unreachable, EXPORTD_QUERY_DATABASE_URL: unreachable },
      /^The source database cannot be reached/,
    ],
    [
      'without the view of events is named with what it lacks',
      { EXPORTD_EVENTS_RELATION: 'no_view' },
      /no_view/,
    ],
  ])('%s', async (_, settings, message) => {
    const other = await openApiHarness(settings);
    try {
      for (const { status, body } of await requests(other))
        expect([status, body.code, body.detail]).toEqual([
          503,
          'source_unreachable',
          expect.stringMatching(message),
        ]);
    } finally {
      await other.close();
    }
  });
});

describe('the hourly limit at the console', () => {
  let limited: ApiHarness;
  beforeAll(async () => {
    limited = await openApiHarness({
      EXPORTD_QUERIES_PER_HOUR: '2',
      EXPORTD_CONSOLE_QUERIES_PER_HOUR: '3',
    });
  });
  afterAll(() => limited.close());

  it('is that of each person, apart from the one of keys, and says which it is and until when', async () => {
    const ofConsole = { authorization: '', 'x-exportd-console': '1', origin: 'http://localhost' };
    /** A person at the console. */
    const signIn = async (key: string) => {
      const { headers } = await limited.call('POST', '/console/session', { key }, ofConsole);
      const cookie = String(headers['set-cookie']).split(';', 1)[0] ?? '';
      return { ...ofConsole, cookie };
    };
    const ada = await signIn(limited.key);
    const bob = await createUser(limited.database.pool, { email: 'bob@example.com' });
    const { key } = await createKey(limited.database.pool, {
      user_id: bob.id,
      project_ids: [limited.projectId],
      scopes: ['query:read'],
    });
    const bobs = await signIn(key);
    const query = { query: { kind: 'DialectQuery', query: 'select 1' }, refresh: 'force_blocking' };
    const ask = async (headers: Readonly<Record<string, string>>, times: number) => {
      const statuses: number[] = [];
      for (let sent = 0; sent < times; sent++)
        statuses.push((await limited.call('POST', 'query/', query, headers)).status);
      return statuses;
    };
    const ofKey = { authorization: `Bearer ${limited.key}` };
    expect(await ask(ofKey, 3)).toEqual([200, 200, 429]);
    expect(await ask(ada, 4)).toEqual([200, 200, 200, 429]);
    expect(await ask(bobs, 1)).toEqual([200]);
    const ofKeys = await limited.call('POST', 'query/', query, ofKey);
    const ofPerson = await limited.call('POST', 'query/', query, ada);
    for (const [response, limit, setting] of [
      [ofKeys, 'the API keys of a project can run 2', 'EXPORTD_QUERIES_PER_HOUR'],
      [ofPerson, 'a person at the console can run 3', 'EXPORTD_CONSOLE_QUERIES_PER_HOUR'],
    ] as const) {
      const until = Number(response.headers['x-ratelimit-reset']) * 1_000;
      const [, named = ''] = /until (\S+): /.exec(String(response.body.detail)) ?? [];
      expect(response.body.detail).toContain(`${limit} queries per hour (${setting})`);
      expect(Math.ceil(Date.parse(named) / 1_000) * 1_000).toBe(until);
    }
  });
});
