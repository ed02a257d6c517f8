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
});
afterAll(() => api.close());

it.each([
  ['select event, count() from events group by event', [['click', 3]]],
  ['select count(distinct distinct_id) from events', [[3]]],
  ['select count(distinct person_id) from events', [[expect.any(Number)]]],
  ['select distinct person.properties.plan from events', [['free']]],
  ['select count() from persons', [[0]]],
])('a source of events alone answers: %s', async (query, rows) => {
  const { status, body } = await api.call('POST', 'query', { query: { kind: 'DialectQuery', query } });
  expect([status, body.detail]).toEqual([200, undefined]);
  expect(body.results).toEqual(rows);
});
