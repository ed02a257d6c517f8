import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { openApiHarness, type ApiHarness } from '../http/api_harness.ts';

let api: ApiHarness;
beforeAll(async () => {
  api = await openApiHarness();
  await api.database.pool.query(
    `insert into public.events (team_id, uuid, event, distinct_id, properties, timestamp)
     select team, gen_random_uuid(), case when n % 2 = 0 then '$pageview' else 'bought' end, 'user ' || n,
       jsonb_build_object('price', n, 'of', team), timestamptz '2026-11-20 23:30:00.25+00' + n * interval '1 minute'
     from unnest(array[$1::integer, $2]) team, generate_series(1, 150) n`,
    [api.projectId, api.otherProjectId],
  );
});
afterAll(() => api.close());

const runQuery = (query: string, more: object = {}, fields: object = {}) =>
  api.call('POST', `/api/projects/${api.projectId}/query/`, {
    query: { kind: 'DialectQuery', query, ...more },
    ...fields,
  });

describe('DialectQuery', () => {
  it("returns only rows of the project, with names, types and the query's canonical text", async () => {
    const { status, body } = await runQuery(
      'select event, count() as events, min(timestamp) from events group by event order by event',
    );
    expect([status, body]).toMatchObject([
      200,
      {
        results: [
          ['$pageview', 75, '2026-11-20T23:32:00.250000Z'],
          ['bought', 75, '2026-11-20T23:31:00.250000Z'],
        ],
        columns: ['event', 'events', 'min(timestamp)'],
        types: [
          ['event', 'String'],
          ['events', 'Int64'],
          ['min(timestamp)', expect.stringContaining('DateTime64')],
        ],
        hasMore: false,
        limit: 100,
        offset: 0,
        dialect_query: expect.stringMatching(/^SELECT .* LIMIT 100$/),
        is_cached: false,
      },
    ]);
  });

  it('returns 100 rows without LIMIT, else as many as LIMIT; the old kind name is an alias', async () => {
    const cut = await runQuery('select uuid from events');
    expect([cut.body.hasMore, cut.body.limit, (cut.body.results as unknown[]).length]).toEqual([
      true,
      100,
      100,
    ]);
    const all = await runQuery('select uuid from events limit 10 offset 145', { kind: 'HogQLQuery' });
    expect([all.body.limit, all.body.offset, (all.body.results as unknown[]).length]).toEqual([10, 145, 5]);
  });

  it('returns a result of many megabytes alike when it is calculated, cached and retrieved', async () => {
    const query =
      "select number, concat(repeat('ä€😀', 300), toString(number)) as text from numbers(2000) limit 2000";
    const id = 'large-result';
    const calculated = await runQuery(query, {}, { client_query_id: id });
    expect(calculated.status).toBe(200);
    const results = calculated.body.results as [number, string][];
    expect(results.length).toBe(2_000);
    expect(results.every(([number, text]) => text === `${'ä€😀'.repeat(300)}${number}`)).toBe(true);
    const cached = await runQuery(query);
    expect(cached.body.is_cached).toBe(true);
    expect(cached.body.results).toEqual(results);
    const retrieved = await api.call('GET', `/api/projects/${api.projectId}/query/${id}/`);
    const status = retrieved.body.query_status as { complete: boolean; results: { results: unknown } };
    expect(status.complete).toBe(true);
    expect(status.results.results).toEqual(results);
  });

  it('returns at most 10,000 rows of a LIMIT in percent or WITH TIES', async () => {
    const share = async (text: string) => {
      const { results, hasMore, limit, offset } = (await runQuery(text)).body;
      return [(results as unknown[]).length, hasMore, limit, offset];
    };
    expect(await share('select number from numbers(25000) limit 50 percent')).toEqual([
      10_000,
      true,
      10_000,
      0,
    ]);
    expect(await share('select number from numbers(25000) limit 40 percent offset 3')).toEqual([
      10_000,
      false,
      10_000,
      3,
    ]);
    expect(await share('select event from events order by event limit 1 with ties')).toEqual([
      75,
      false,
      10_000,
      0,
    ]);
    expect(await share('select event from events limit 5 offset 0.99')).toEqual([1, false, 5, null]);
  });

  it('returns the row of totals after the maximum number of rows', async () => {
    const grouped = async (text: string) => {
      const { results, hasMore, limit } = (await runQuery(text)).body;
      const rows = results as unknown[];
      return [rows.length, rows.at(-1), hasMore, limit];
    };
    const groups = 'select number as n, count() from numbers(20000) group by n with totals order by n';
    expect(await grouped(groups)).toEqual([101, [null, 20_000], true, 100]);
    expect(await grouped(`${groups} limit 20000`)).toEqual([10_000, [null, 20_000], true, 9_999]);
    expect(await grouped(`${groups} limit 50 percent`)).toEqual([10_000, [null, 20_000], true, 9_999]);
    expect(await grouped(`${groups} limit 3 offset 19998`)).toEqual([3, [null, 20_000], false, 3]);
  });

  it('reads values and variables', async () => {
    const { body } = await runQuery(
      'select count() from events where event = {name} and toInt(properties.price) > {variables.least}',
      { values: { name: 'bought' }, variables: { a: { variableId: 'a', code_name: 'least', value: 100 } } },
      { variables_override: { a: { value: 147 } } },
    );
    expect(body.results).toEqual([[1]]);
    const missing = await runQuery('select {variables.none}');
    expect([missing.status, missing.body.code]).toEqual([400, 'unknown_variable']);
  });

  it('says how long it took, and what it cost on request', async () => {
    const plain = await runQuery('select count() from events');
    const names = (plain.body.timings as { k: string; t: number }[]).map(({ k }) => k);
    expect(names).toEqual(['schema', 'statements', 'computation', 'total']);
    expect(plain.body).not.toHaveProperty('explain');
    const explained = await runQuery("select count() from events where event = 'bought'", { explain: true });
    expect(explained).toMatchObject({
      status: 200,
      body: {
        results: [[75]],
        explain: {
          planning_seconds: expect.any(Number),
          execution_seconds: expect.any(Number),
          bytes_from_memory: expect.any(Number),
          bytes_from_disk: expect.any(Number),
          temporary_bytes: 0,
          plan: { step: expect.any(String), rows: 1, steps: expect.any(Array) },
        },
      },
    });
    // Nothing of the source's own names and conditions.
    expect(JSON.stringify(explained.body.explain)).not.toMatch(/bought|team_id|public/);
    expect(await runQuery('select 1', { explain: false })).toMatchObject({ status: 200 });
    expect(await runQuery('select 1', { explain: 'yes' })).toMatchObject({
      status: 400,
      body: { attr: 'query__explain' },
    });
  });

  it('returns the position of an error', async () => {
    const syntax = await runQuery('select event\nform events');
    expect([syntax.status, syntax.body]).toMatchObject([
      400,
      {
        code: 'dialect_error',
        attr: 'query__query',
        detail: expect.stringMatching(/line 2, column \d+\)\n.*\n *\^/),
      },
    ]);
    const field = await runQuery('select no_such_field from events');
    expect(field.body.detail).toContain('Unable to resolve field: no_such_field');
    for (const text of [
      'drop table events',
      'select 1; select 2',
      'select * from pg_class',
      'select pg_sleep(1)',
    ])
      expect((await runQuery(text)).status).toBe(400);
  });
});

describe('what explain advises', () => {
  const rows = 210_000;
  beforeAll(() =>
    api.database.pool.query(
      `insert into public.events (team_id, uuid, event, distinct_id, properties, timestamp)
       select $1, gen_random_uuid(), 'seen', 'user', jsonb_build_object('price', n % 1000), timestamptz '2026-10-01 00:00:00+00'
         + n * interval '1 second' from generate_series(1, $2::integer) n`,
      [api.projectId, rows],
    ),
  );

  const adviceOn = async (query: string): Promise<unknown> => {
    const { status, body } = await runQuery(query, { explain: true });
    expect(status).toBe(200);
    return (body.explain as { advice: unknown }).advice;
  };

  it('names the property whose index would find the rows of a condition', async () => {
    expect(
      await adviceOn("select count() from events where event = 'seen' and properties.price = '147'"),
    ).toEqual([
      'A condition left 210 of 210,000 rows that were read. An index of the source on the project, the property "price" and the time would find them without the others.',
    ]);
  });

  it('says that no index helps where the result needs all rows', async () => {
    expect(await adviceOn("select count() from events where event = 'seen'")).toEqual([
      expect.stringMatching(
        /^The result needs all 210,000 rows that were read, so no index helps\. .* materialized view /,
      ),
    ]);
  });

  it('is nothing for a query that reads few rows', async () => {
    expect(await adviceOn("select count() from events where event = 'bought'")).toEqual([]);
  });
});
