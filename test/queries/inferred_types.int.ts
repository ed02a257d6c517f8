import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import {
  defineProperty,
  listProperties,
  type PropertyDefinition,
  removeProperty,
} from '../../src/queries/property_definitions.ts';
import { openApiHarness, type ApiHarness } from '../http/api_harness.ts';

let api: ApiHarness;

/** Inserts an event for each of some property bags, which are those of its person too. */
const insert = (team_id: number, bags: readonly object[]) =>
  api.database.pool.query(
    `insert into public.events (team_id, uuid, event, distinct_id, properties, person_properties, timestamp)
     select $1, gen_random_uuid(), 'bought', 'd', bag, bag, '2026-11-20T10:00Z' from jsonb_array_elements($2) as bag`,
    [team_id, JSON.stringify(bags)],
  );

/** Twenty purchases. One price is no number, and half of the codes are none. */
const purchases = Array.from({ length: 20 }, (_, index) => ({
  price: index === 0 ? 'n/a' : index * 10,
  quantity: '2',
  vip: index % 2 === 0,
  trial: index === 3 ? 'true' : 'false',
  since: `2026-11-${String(index + 1).padStart(2, '0')}T08:00:00Z`,
  plan: index % 2 === 0 ? 'pro' : '5',
  code: index % 2 === 0 ? index : `c${index}`,
  utm_id: 5,
  $group_0: 'acme',
  ...(index < 3 && { note: null }),
}));

beforeAll(async () => {
  api = await openApiHarness({ EXPORTD_QUERIES_PER_HOUR: '10000' });
  await insert(api.projectId, purchases);
  await insert(api.otherProjectId, [{ price: 'dear' }, { price: 'cheap' }]);
  await api.database.pool.query(
    `insert into public.groups (team_id, group_type_index, group_key, group_properties)
     values ($1, 0, 'acme', '{"seats": 7}'), ($1, 1, 'acme', '{"seats": "many"}')`,
    [api.projectId],
  );
  await api.database.pool.query(
    `insert into public.persons (team_id, id, properties, created_at, version, is_deleted)
     values ($1, gen_random_uuid(), '{"age": 30}', now(), 1, false)`,
    [api.projectId],
  );
});
afterAll(() => api.close());

const ask = async (query: string | object, of = api.projectId) => {
  const { key } = of === api.projectId ? api : await api.newKey(of);
  const { status, body } = await api.call(
    'POST',
    `/api/projects/${of}/query/`,
    {
      query: typeof query === 'string' ? { kind: 'DialectQuery', query } : query,
      refresh: 'force_blocking',
    },
    { authorization: `Bearer ${key}` },
  );
  return status === 200 ? body : String(body.detail);
};
const rowsOf = async (query: string) => {
  const answer = await ask(query);
  return typeof answer === 'string' ? answer : answer.results;
};
const stored = async (teamId = api.projectId) =>
  (await listProperties(api.database.pool, teamId)).map(
    ({ scope, name, type, sampled_values, matching_values }) => [
      scope,
      name,
      type,
      sampled_values,
      matching_values,
    ],
  );
const forget = (name: string, scope: PropertyDefinition['scope'] = 'event') =>
  removeProperty(api.database.pool, { team_id: api.projectId, scope, name });

/** Queries that read texts, with their results before any type is inferred. */
const textQueries = [
  "select count() from events where properties.plan = '5'",
  "select count() from events where properties.price = '50'",
  'select properties.price, count() from events group by properties.price order by properties.price',
  'select max(properties.price), min(properties.since), min(properties.vip) from events',
  "select countIf(properties.vip = 'true'), countIf(properties.since > '2026-11-10') from events",
  'select toFloat(properties.price), toDate(properties.since) from events order by 1',
];
let before: readonly unknown[];

describe('a query that rejects the text of a property', () => {
  it('has not inferred any type as long as queries read texts', async () => {
    before = await Promise.all(textQueries.map(rowsOf));
    expect(before[0]).toEqual([[10]]);
    expect(before[3]).toEqual([['n/a', '2026-11-01T08:00:00Z', 'false']]);
    expect(await stored()).toEqual([]);
  });

  // The forms of the reviewed queries d01, p11, p12, p14, p15, p16, s08 and x17.
  it.each([
    ['select avg(properties.price), sum(properties.price) from events', [[100, 1_900]]],
    ['select count() from events where properties.price > 100', [[9]]],
    ['select count() from events where properties.price = 50', [[1]]],
    ['select sum(properties.price * 2) from events', [[3_800]]],
    ['select count() from events where properties.vip = true', [[10]]],
    ['select countIf(coalesce(properties.trial, false)) from events', [[1]]],
    [
      'select sum(ifNull(properties.price, 0)), sum(ifNull(properties.price, 1)) from events',
      [[1_900, 1_901]],
    ],
    ['select count() from events where properties.since >= now() - interval 100 year', [[20]]],
    ['select count() from events where person.properties.price > 100', [[9]]],
    ['select count() from events where group_0.properties.seats > 5', [[20]]],
    ['select avg(properties.age) from persons', [[30]]],
  ])('reads the type of its values: %s', async (query, results) => {
    expect(await rowsOf(query)).toEqual(results);
  });

  it('stores what it inferred, from how many values', async () => {
    expect(await stored()).toEqual([
      ['event', 'price', 'numeric', 20, 19],
      ['event', 'since', 'datetime', 20, 20],
      ['event', 'trial', 'boolean', 20, 20],
      ['event', 'vip', 'boolean', 20, 20],
      ['group_0', 'seats', 'numeric', 1, 1],
      ['person', 'age', 'numeric', 1, 1],
      ['person', 'price', 'numeric', 20, 19],
    ]);
  });

  it('says so, and has the type in all of its places', async () => {
    expect(
      await ask(
        "select properties.price, max(properties.price) from events where properties.price > 170 and properties.plan != '' group by 1 order by 1 desc",
      ),
    ).toMatchObject({
      results: [
        [190, 190],
        [180, 180],
      ],
      types: [
        ['price', 'Nullable(Float64)'],
        [expect.anything(), 'Nullable(Float64)'],
      ],
      notice:
        'properties.price is read as a number, as 19 of 20 values are. "exportd property define" sets another type.',
    });
  });

  it('changes no query that reads texts', async () => {
    expect(await Promise.all(textQueries.map(rowsOf))).toEqual(before);
    expect(await ask(textQueries[0] ?? '')).toMatchObject({ notice: null });
  });

  it('is rejected if the values have no common type, until they have', async () => {
    for (const name of ['plan', 'code', 'quantity', 'utm_id', 'note', 'nowhere', 'x'.repeat(401)])
      expect(await rowsOf(`select avg(properties.${name}) from events`)).toMatch(
        /expects a number as argument 1, found Nullable\(String\)/,
      );
    expect(await rowsOf('select avg(group_1.properties.seats) from events')).toMatch(
      /found Nullable\(String\)/,
    );
    expect((await stored()).map(([, name]) => name)).not.toContain('code');
    await insert(
      api.projectId,
      Array.from({ length: 100 }, () => ({ code: 1 })),
    );
    expect(await rowsOf('select sum(properties.code) from events')).toEqual([[190]]);
  });

  it('keeps an inferred type, whatever is inserted later; other values are null', async () => {
    await insert(
      api.projectId,
      Array.from({ length: 500 }, () => ({ price: 'free' })),
    );
    expect(
      await rowsOf('select avg(properties.price), countIf(isNull(properties.price)) from events'),
    ).toEqual([[100, 601]]);
    await forget('price');
    expect(await rowsOf('select avg(properties.price) from events')).toMatch(/found Nullable\(String\)/);
  });

  it('reads a declared type instead of an inferred one', async () => {
    const { pool } = api.database;
    const declare = (type: PropertyDefinition['type']) =>
      defineProperty(pool, { team_id: api.projectId, scope: 'event', name: 'trial', type });
    expect(await declare('string')).toMatchObject({ type: 'string', sampled_values: null });
    expect(await rowsOf('select countIf(properties.trial = true) from events')).toMatch(
      /cannot be compared with Bool/,
    );
    await declare('boolean');
    expect(await ask('select countIf(properties.trial = true) from events')).toMatchObject({
      results: [[1]],
      notice: null,
    });
    expect(await stored()).toContainEqual(['event', 'trial', 'boolean', null, null]);
  });

  it('knows nothing of other projects', async () => {
    expect(await ask('select avg(properties.price) from events', api.otherProjectId)).toMatch(
      /found Nullable\(String\)/,
    );
    expect(await stored(api.otherProjectId)).toEqual([]);
  });

  it('reads one type in all statements of an insight', async () => {
    const range = { date_from: '2026-11-20', date_to: '2026-11-20' };
    const series = (math_hogql: string) => [
      { kind: 'EventsNode', event: 'bought', math: 'hogql', math_hogql },
    ];
    const total = await ask({
      kind: 'TrendsQuery',
      series: series('sum(properties.code)'),
      dateRange: range,
      breakdownFilter: { breakdown: 'code', breakdown_type: 'event', breakdown_limit: 1 },
    });
    expect(total).toMatchObject({
      results: [
        { breakdown_value: '1', data: [100] },
        { breakdown_value: expect.stringContaining('other'), data: [90] },
      ],
      notice: expect.stringContaining('properties.code is read as a number'),
    });
    // A number is what the series needs, and text would do for max().
    expect(
      await ask({ kind: 'TrendsQuery', series: series('max(properties.code)'), dateRange: range }),
    ).toMatchObject({ results: [{ data: [18] }] });
    expect(
      await ask({ kind: 'TrendsQuery', series: series('max(properties.plan)'), dateRange: range }),
    ).toMatch('The expression must return a number');
  });

  it('may be an EventsQuery', async () => {
    const query = { kind: 'EventsQuery', after: 'all', event: 'bought' };
    expect(
      await ask({ ...query, select: ['count()', 'sum(properties.code)'], where: ['properties.code > 10'] }),
    ).toMatchObject({ results: [[4, 60]] });
    expect(await ask({ ...query, select: ['event'], where: ['properties.plan > 10'] })).toMatch(
      /cannot be compared with Int64/,
    );
  });

  it.each(['57P03', '25006'])(
    'fails as the control database that stores the type: SQLSTATE %s',
    async (state) => {
      const { pool } = api.database;
      await insert(api.projectId, [{ weight: 5 }]);
      await pool.query(
        `create function public.refuse_types() returns trigger language plpgsql as
         $$ begin raise exception 'No.' using errcode = '${state}'; end $$;
       create trigger refuse_types before insert on exportd.property_definitions
         execute function public.refuse_types()`,
      );
      const { status, body } = await api.call('POST', 'query/', {
        query: { kind: 'DialectQuery', query: 'select sum(properties.weight) from events' },
        refresh: 'force_blocking',
      });
      await pool.query('drop function public.refuse_types() cascade');
      expect([status, body.code, body.detail]).toEqual([
        503,
        'unavailable',
        'The control database is not available. Retry in a few seconds.',
      ]);
      expect((await stored()).map(([, name]) => name)).not.toContain('weight');
    },
  );

  it('infers one type when several need it at the same time', async () => {
    await forget('vip');
    const counts = await Promise.all(
      Array.from({ length: 5 }, () => rowsOf('select countIf(properties.vip) from events')),
    );
    expect(counts).toEqual(Array.from({ length: 5 }, () => [[10]]));
  });
});
