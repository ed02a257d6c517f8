import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { readRowQuery } from '../../src/source/row_query/selected_rows.ts';
import { allRows, type RowSelection } from '../../src/source/row_selection.ts';
import { blocksOf, hourOf, rowsOf, sourceOf } from '../source/rows.ts';
import { openApiHarness, type ApiHarness } from '../http/api_harness.ts';
import { prepareQueryRole } from '../setup/query_role.ts';

/** The same rows in exportd's own tables, and with types that exports convert. */
let own: ApiHarness;
let other: ApiHarness;
beforeAll(async () => {
  own = await openApiHarness();
  other = await openApiHarness({
    EXPORTD_EVENTS_RELATION: 'typed.events',
    EXPORTD_PERSONS_RELATION: 'typed.persons',
    EXPORTD_PERSON_DISTINCT_IDS_RELATION: 'typed.person_distinct_ids',
  });
  for (const { database, projectId } of [own, other]) {
    await database.pool.query(
      `insert into public.events (team_id, uuid, event, distinct_id, person_id, properties, timestamp, created_at, inserted_at)
       select $1, md5(n::text)::uuid, case n % 2 when 0 then 'open' else 'buy' end, (n % 5)::text, null,
         jsonb_build_object('price', n, 'plan', case n % 3 when 0 then 'free' end, '$session_id', 's' || n % 4), t, t, t
       from generate_series(1, 30) n, lateral (select timestamptz '2026-11-01 10:00Z' + n * interval '1 minute' as t) times`,
      [projectId],
    );
    await database.pool.query(
      `insert into public.persons (team_id, id, properties, created_at, updated_at, version)
       select $1, ('00000000-0000-4000-8000-00000000000' || n)::uuid, jsonb_build_object('country', 'c' || n % 2),
         '2026-11-01 10:05Z', '2026-11-01 10:06Z', n from generate_series(0, 4) n`,
      [projectId],
    );
    await database.pool.query(
      `insert into public.person_distinct_ids (team_id, distinct_id, person_id, version, updated_at)
       select $1, n, ('00000000-0000-4000-8000-00000000000' || n)::uuid, n, '2026-11-01 10:07Z' from generate_series(0, 4) n`,
      [projectId],
    );
  }
  await other.database.pool.query(`create schema typed;
    create type typed.name as enum ('open', 'buy');
    create domain typed.moment as timestamptz;
    create domain typed.document as jsonb;
    create view typed.events as select team_id::numeric as team_id, uuid, event::typed.name as event, distinct_id::bigint as distinct_id,
      person_id::text as person_id, properties::text as properties, null::typed.document as person_properties,
      elements_chain, timestamp::typed.moment as timestamp, created_at::text as created_at, inserted_at from public.events;
    create view typed.bare_events as select team_id, uuid, event, distinct_id, person_id, properties, elements_chain, timestamp,
      created_at, inserted_at from typed.events;
    create view typed.varchar_events as select team_id, uuid, event, distinct_id::varchar as distinct_id, person_id, properties,
      elements_chain, timestamp, created_at, inserted_at from typed.events;
    create view typed.persons as select team_id, id, properties::typed.document as properties, created_at, updated_at,
      version::numeric as version, is_deleted from public.persons;
    create view typed.person_distinct_ids as select team_id, distinct_id::bigint as distinct_id, person_id, version::text as version,
      updated_at, is_deleted from public.person_distinct_ids`);
  await prepareQueryRole(other.database.url, {
    EXPORTD_EVENTS_RELATION: 'typed.events',
    EXPORTD_PERSONS_RELATION: 'typed.persons',
    EXPORTD_PERSON_DISTINCT_IDS_RELATION: 'typed.person_distinct_ids',
  });
});
afterAll(() => Promise.all([own.close(), other.close()]));

const dialect = (query: string) => ({ kind: 'DialectQuery', query });
const dateRange = { date_from: '2026-10-30', date_to: '2026-11-03' };
const property = (key: string, type: string, value: string) => ({ key, type, value, operator: 'exact' });

it.each([
  dialect(
    'select uuid, event, distinct_id, properties, timestamp, created_at from events order by timestamp',
  ),
  dialect(
    `select count() from events where properties.plan = 'free' and event = 'open' and distinct_id = '3'`,
  ),
  dialect('select person.properties.country, count() from events group by 1 order by 1'),
  dialect('select person_id, distinct_id, version from raw_person_distinct_ids order by 2'),
  dialect('select id, properties, created_at from persons order by id'),
  dialect('select session_id, $start_timestamp from sessions order by 1'),
  dialect(`select count() from events where person_id = '00000000-0000-4000-8000-000000000003'`),
  {
    kind: 'TrendsQuery',
    dateRange,
    series: [
      { kind: 'EventsNode', event: 'buy', math: 'dau', properties: [property('plan', 'event', 'free')] },
    ],
    breakdownFilter: { breakdown: 'country', breakdown_type: 'person' },
  },
  {
    kind: 'FunnelsQuery',
    dateRange,
    series: ['open', 'buy'].map((event) => ({ kind: 'EventsNode', event })),
    properties: [property('country', 'person', 'c1')],
  },
  {
    kind: 'EventsQuery',
    select: ['*', 'person'],
    after: '2026-10-30',
    before: '2026-11-03',
    orderBy: ['timestamp'],
  },
  { kind: 'ActorsQuery', select: ['id', 'person', 'created_at'], orderBy: ['id'] },
])('types that exports convert are converted for queries: %j', async (query) => {
  const [expected, found] = await Promise.all(
    [own, other].map(async (api) => {
      const { status, body } = await api.call('POST', 'query', { query });
      return { status, detail: body.detail, results: body.results };
    }),
  );
  expect(expected).toMatchObject({ status: 200 });
  expect(found).toEqual(expected);
});

it('the check of the source accepts them', async () => {
  const { body } = await other.call('GET', 'source/check');
  expect(body).toMatchObject({ ok: true });
});

const relations = {
  EXPORTD_PERSONS_RELATION: 'typed.persons',
  EXPORTD_PERSON_DISTINCT_IDS_RELATION: 'typed.person_distinct_ids',
};
const country: RowSelection = {
  ...allRows,
  query: readRowQuery('events', {
    dialect_query: 'select uuid, event, person.properties.country as country from events',
    timezone: 'UTC',
    week_start_day: 'monday',
  }),
};

it.each([
  ['events', 'typed.events', allRows],
  ['events', 'typed.bare_events', allRows],
  ['events', 'typed.varchar_events', allRows],
  ['events', 'typed.bare_events', country],
  ['persons', 'typed.events', allRows],
] as const)('exports read the same %s of %s (%#)', async (model, events, selection) => {
  const bare = events !== 'typed.events';
  if (bare)
    await own.database.pool.query(
      'create or replace view bare as select team_id, uuid, event, distinct_id, person_id, properties, elements_chain, timestamp, created_at, inserted_at from events',
    );
  const sources = [
    sourceOf(own.database.url, bare ? { EXPORTD_EVENTS_RELATION: 'bare' } : {}),
    sourceOf(other.database.url, { ...relations, EXPORTD_EVENTS_RELATION: events }),
  ];
  const found = await Promise.all(
    sources.map(async (source, index) => {
      const team_id = [own, other][index]?.projectId ?? 0;
      const rows = (await blocksOf(source, { ...hourOf(model), team_id, selection })).flatMap(rowsOf);
      return rows.map((row) => ({ ...row, ...('team_id' in row && { team_id: 0 }) }));
    }),
  );
  await Promise.all(sources.map((source) => source.close()));
  expect(found[0]?.length).toBeGreaterThan(0);
  expect(found[1]).toEqual(found[0]);
});
