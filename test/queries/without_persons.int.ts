import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { openApiHarness, type ApiHarness } from '../http/api_harness.ts';

let api: ApiHarness;
beforeAll(async () => {
  api = await openApiHarness({
    EXPORTD_PERSONS_RELATION: 'public.no_persons',
    EXPORTD_PERSON_DISTINCT_IDS_RELATION: 'public.no_distinct_ids',
  });
  await api.database.pool.query(
    `insert into events (team_id, uuid, event, distinct_id, person_id, properties, person_properties, timestamp)
     select $1, gen_random_uuid(), 'click', 'user ' || number, null, '{}', '{"plan": "free"}', now()
     from generate_series(1, 3) as number`,
    [api.projectId],
  );
  await api.database.pool.query(
    `insert into events (team_id, uuid, event, distinct_id, properties, timestamp)
     values ($1, gen_random_uuid(), 'buy', 'user 2', '{}', now() + interval '1 second')`,
    [api.projectId],
  );
});
afterAll(() => api.close());

it.each([
  ["select event, count() from events where event = 'click' group by event", [['click', 3]]],
  ['select count(distinct distinct_id) from events', [[3]]],
  ['select count(distinct person_id) from events', [[3]]],
  ["select count(distinct person_id) from events where distinct_id = 'user 1'", [[1]]],
  ["select distinct person.properties.plan from events where event = 'click'", [['free']]],
  ['select count() from persons', [[0]]],
])('a source of events alone answers: %s', async (query, rows) => {
  const { status, body } = await api.call('POST', 'query', { query: { kind: 'DialectQuery', query } });
  expect([status, body.detail]).toEqual([200, undefined]);
  expect(body.results).toEqual(rows);
});

const dateRange = { date_from: '-1d', date_to: null };
const clicks = { kind: 'EventsNode', event: 'click' };
const totals: readonly (readonly [object, (results: never) => unknown, unknown])[] = [
  [
    {
      kind: 'TrendsQuery',
      dateRange,
      series: [{ ...clicks, math: 'dau' }],
      trendsFilter: { display: 'BoldNumber' },
    },
    ([{ aggregated_value }]: [{ aggregated_value: number }]) => aggregated_value,
    3,
  ],
  [
    { kind: 'FunnelsQuery', dateRange, series: [clicks, { ...clicks, event: 'buy' }] },
    (steps: { count: number }[]) => steps.map(({ count }) => count),
    [3, 1],
  ],
];

it.each(totals)(
  'a source of events alone counts distinct ids as persons, and says so: %j',
  async (query, read, value) => {
    const { status, body } = await api.call('POST', 'query', { query });
    expect(status).toBe(200);
    expect(read(body.results as never)).toEqual(value);
    expect(body.notice).toMatch(/no relation of persons, so that each distinct id counts as a person/);
  },
);

it('a result without persons has no notice', async () => {
  const { body } = await api.call('POST', 'query', {
    query: { kind: 'DialectQuery', query: 'select count() from events' },
  });
  expect(body.notice).toBeNull();
});

it('an event that names its person counts for that one', async () => {
  await api.database.pool.query(
    `insert into events (team_id, uuid, event, distinct_id, person_id, properties, timestamp)
     select $1, gen_random_uuid(), 'named', 'other ' || n, '00000000-0000-4000-8000-000000000001', '{}', now() from generate_series(1, 2) n`,
    [api.projectId],
  );
  const { body } = await api.call('POST', 'query', {
    query: {
      kind: 'DialectQuery',
      query: `select count(distinct person_id) from events where event = 'named'`,
    },
  });
  expect(body.results).toEqual([[1]]);
});
