import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { openApiHarness, type ApiHarness } from '../../http/api_harness.ts';

const person = (name: string): string => `00000000-0000-0000-0000-0000000000${name}`;
/** Ada used a browser and a phone before she signed in: three persons were merged into `ada`. */
const [ada, browser, phone] = [person('ad'), person('b0'), person('f0')];
/** The mapping of Bea's distinct id came after her events, which name no person. */
const bea = person('be');
/** The distinct id of Carl has no mapping. */
const carl = person('ca');
/** The mapping of Dan's distinct id, to Ada, is deleted. */
const dan = person('da');
/** The person of Eve's distinct id is deleted. */
const eve = person('ee');

const persons = [ada, bea, carl, dan, eve].sort();
const day = '2026-11-10';

/** Event, distinct id, the person that the event names, hour of the day. */
const events: readonly (readonly [string, string, string | null, number])[] = [
  ['seen', 'browser', browser, 8],
  ['seen', 'phone', phone, 9],
  ['seen', 'ada', ada, 10],
  ['bought', 'ada', ada, 11],
  ['seen', 'bea', null, 8],
  ['bought', 'bea-2', bea, 9],
  ['seen', 'carl', carl, 8],
  ['seen', 'dan', dan, 8],
  ['seen', 'eve', browser, 8],
  ['seen', 'nobody', null, 8],
];

let api: ApiHarness;
beforeAll(async () => {
  api = await openApiHarness();
  const { pool } = api.database;
  const [project, other] = [api.projectId, api.otherProjectId];
  await pool.query(
    `insert into public.events (team_id, uuid, event, distinct_id, person_id, properties, timestamp)
     select $1, gen_random_uuid(), event, distinct_id, person_id, jsonb_build_object('$session_id', 's'),
       $3::timestamptz + interval '1 hour' * hour
     from jsonb_to_recordset($2) as x (event text, distinct_id text, person_id uuid, hour integer)`,
    [
      project,
      JSON.stringify(
        events.map(([event, distinct_id, person_id, hour]) => ({ event, distinct_id, person_id, hour })),
      ),
      `${day}T00:00:00Z`,
    ],
  );
  await pool.query(
    `insert into public.persons (team_id, id, properties, is_deleted) values
       ($1, '${ada}', '{"plan": "team"}', false), ($1, '${browser}', '{"plan": "old"}', true),
       ($1, '${bea}', '{"plan": "free"}', false), ($1, '${carl}', '{"plan": "free"}', false),
       ($1, '${dan}', '{"plan": "free"}', false), ($1, '${eve}', '{"plan": "gone"}', true),
       ($2, '${ada}', '{"plan": "other"}', false)`,
    [project, other],
  );
  await pool.query(
    `insert into public.person_distinct_ids (team_id, distinct_id, person_id, version, is_deleted) values
       ($1, 'browser', '${ada}', 1, false), ($1, 'phone', '${ada}', 1, false), ($1, 'ada', '${ada}', 0, false),
       ($1, 'bea', '${bea}', 0, false), ($1, 'bea-2', '${bea}', 0, false), ($1, 'dan', '${ada}', 2, true),
       ($1, 'eve', '${eve}', 1, false), ($2, 'carl', '${ada}', 5, false), ($2, 'nobody', '${ada}', 5, false)`,
    [project, other],
  );
});
afterAll(() => api.close());

async function resultsOf(query: object): Promise<unknown> {
  const { status, body } = await api.call('POST', `/api/projects/${api.projectId}/query/`, { query });
  expect([status, body.detail]).toEqual([200, undefined]);
  return body.results;
}

const rowsOf = async (query: object): Promise<readonly (readonly unknown[])[]> =>
  (await resultsOf(query)) as readonly (readonly unknown[])[];
const dialect = (query: string): object => ({ kind: 'DialectQuery', query });
const trends = (series: object, more: object = {}): object => ({
  kind: 'TrendsQuery',
  series: [{ kind: 'EventsNode', ...series }],
  dateRange: { date_from: day, date_to: day },
  ...more,
});
const funnel = {
  kind: 'FunnelsQuery',
  series: [
    { kind: 'EventsNode', event: 'seen' },
    { kind: 'EventsNode', event: 'bought' },
  ],
  dateRange: { date_from: day, date_to: day },
};
const eventsQuery = (fields: object): object => ({
  kind: 'EventsQuery',
  after: 'all',
  limit: 100,
  ...fields,
});
const actors = (source: object): object => ({ kind: 'ActorsQuery', select: ['id'], source });
const pointOf = (source: object): object => ({ kind: 'InsightActorsQuery', source, day, series: 0 });

/** The persons of the events, asked for in different ways. */
const listings: readonly (readonly [string, object])[] = [
  ['person_id', dialect('select distinct person_id from events')],
  ['person.id', dialect('select distinct person.id from events')],
  ['pdi.person_id', dialect('select distinct pdi.person_id from events')],
  ['pdi.person.id', dialect('select distinct e.pdi.person.id from events as e')],
  ['poe.id', dialect('select poe.id from events group by poe.id')],
  ['*', dialect('select distinct person_id from (select * from events)')],
  [
    'groupUniqArray',
    dialect('select arrayJoin(ids) from (select groupUniqArray(person_id) as ids from events)'),
  ],
  [
    'a join',
    dialect('select distinct e.person_id from events as e left join persons as p on p.id = e.person_id'),
  ],
  [
    'a right join',
    dialect('select distinct e.person_id from persons as p right join events as e on p.id = e.person_id'),
  ],
  ['select', eventsQuery({ select: ['person_id', 'count()'] })],
  ['orderBy', eventsQuery({ select: ['person_id'], orderBy: ['person_id'] })],
  ['actors of dau', actors(pointOf(trends({ math: 'dau' })))],
  ['actors of weekly_active', actors(pointOf(trends({ math: 'weekly_active' })))],
  ['actors of all events', actors(pointOf(trends({})))],
  [
    'actors of a dialect source',
    actors(dialect('select person_id as actor_id from events where person_id is not null')),
  ],
];

const distinctIdsOf = (ids: readonly unknown[]): readonly unknown[] =>
  [...new Set(ids)].filter((id) => id !== null).sort();

/** A count of the persons of all events. */
const counts: readonly (readonly [string, object])[] = [
  ['count(distinct)', dialect('select count(distinct person_id) from events')],
  ['uniq', dialect('select uniq(person.id) from events')],
  ['uniqExact of pdi', dialect('select uniqExact(pdi.person_id) from events')],
  [
    'group by',
    dialect(
      'select count() from (select person_id from events group by person_id) where person_id is not null',
    ),
  ],
  [
    'a window',
    dialect(
      'select max(n) from (select dense_rank() over (order by person_id) as n from events where person_id is not null)',
    ),
  ],
  ['an aggregate of events', eventsQuery({ select: ['count(distinct person_id)'] })],
];

const values: readonly (readonly [string, object])[] = [
  ['dau', trends({ math: 'dau' })],
  ['dau by week', trends({ math: 'dau' }, { interval: 'week' })],
  ['weekly_active', trends({ math: 'weekly_active' })],
  ['monthly_active', trends({ math: 'monthly_active' })],
  ['hogql', trends({ math: 'hogql', math_hogql: 'uniq(person_id)' })],
  ['dau in total', trends({ math: 'dau' }, { trendsFilter: { display: 'BoldNumber' } })],
  ['dau by breakdown', trends({ math: 'dau' }, { breakdownFilter: { breakdown: '$session_id' } })],
];

describe('the persons of events with merged persons', () => {
  it.each(listings)('are the merged ones by %s', async (_, query) => {
    expect(distinctIdsOf((await rowsOf(query)).map(([id]) => id))).toEqual(persons);
  });

  it.each(counts)('count as the merged ones by %s', async (_, query) => {
    expect((await rowsOf(query))[0]?.[0]).toBe(persons.length);
  });

  it.each(values)('are as many as %s counts', async (_, query) => {
    const [line] = (await resultsOf(query)) as readonly {
      readonly data: readonly number[];
      readonly aggregated_value?: number;
    }[];
    expect(line?.aggregated_value ?? line?.data.at(-1)).toBe(persons.length);
  });

  it('convert in a funnel with events of several distinct ids', async () => {
    const steps = (await resultsOf(funnel)) as readonly { readonly count: number }[];
    expect(steps.map(({ count }) => count)).toEqual([5, 2]);
    const converted = { kind: 'FunnelsActorsQuery', source: funnel, funnelStep: 2 };
    expect((await rowsOf(actors(converted))).map(([id]) => id).sort()).toEqual([ada, bea].sort());
  });

  it('are actors with the events of all their distinct ids', async () => {
    const select = ['person', 'event_count', 'arraySort(event_distinct_ids)'];
    const source = pointOf(trends({ math: 'dau' }));
    const [first] = await rowsOf({ kind: 'ActorsQuery', select, source, orderBy: ['event_count DESC'] });
    const distinctIds = ['ada', 'browser', 'phone'];
    expect(first).toEqual([
      expect.objectContaining({ id: ada, properties: { plan: 'team' }, distinct_ids: distinctIds }),
      4,
      distinctIds,
    ]);
  });

  it('have one first event', async () => {
    const firsts = trends({ event: 'seen', math: 'first_time_for_user' });
    expect(await resultsOf(firsts)).toMatchObject([{ data: [5] }]);
    const perActor = trends({ event: 'seen', math: 'max_count_per_actor' });
    expect(await resultsOf(perActor)).toMatchObject([{ data: [3] }]);
  });

  it.each<[string, object]>([
    ['a comparison', dialect(`select distinct_id from events where person_id = '${ada}'`)],
    ['a comparison with a nested id', dialect(`select distinct_id from events where '${ada}' = person.id`)],
    ['IN', dialect(`select distinct_id from events where pdi.person_id in ('${ada}', '${phone}')`)],
    [
      'a subquery',
      dialect(
        `select distinct_id from events where person_id in (select id from persons where properties.plan = 'team')`,
      ),
    ],
    [
      'a property of the person',
      dialect(`select distinct_id from events where person.properties.plan = 'team'`),
    ],
    [
      'a join',
      dialect(
        `select e.distinct_id from events as e join persons as p on p.id = e.person_id where p.properties.plan = 'team'`,
      ),
    ],
    ['personId', eventsQuery({ select: ['distinct_id'], personId: ada })],
    [
      'a property filter',
      eventsQuery({ select: ['distinct_id'], properties: [{ type: 'person', key: 'plan', value: 'team' }] }),
    ],
    [
      'a filter of ids',
      eventsQuery({
        select: ['distinct_id'],
        properties: [{ type: 'event_metadata', key: 'person_id', value: ada }],
      }),
    ],
  ])('are selected by %s', async (_, query) => {
    expect(distinctIdsOf((await rowsOf(query)).map(([id]) => id))).toEqual(['ada', 'browser', 'phone']);
  });

  it.each<[string, string, readonly string[]]>([
    ['no mapping', carl, ['carl']],
    ['a deleted mapping', dan, ['dan']],
    ['events that name no person', bea, ['bea', 'bea-2']],
    ['a deleted person', eve, ['eve']],
    ['events that name it, but whose mappings name another', browser, []],
  ])('are selected if a person has %s', async (_, id, distinctIds) => {
    const bySelection = await rowsOf(eventsQuery({ select: ['distinct_id'], personId: id }));
    expect(distinctIdsOf(bySelection.map(([name]) => name))).toEqual(distinctIds);
    const byComparison = await rowsOf(
      dialect(`select distinct distinct_id from events where person_id = '${id}'`),
    );
    expect(distinctIdsOf(byComparison.map(([name]) => name))).toEqual(distinctIds);
  });

  it('are shown in the column person, and break down trends', async () => {
    const shown = await rowsOf(
      eventsQuery({ select: ['distinct_id', 'person', 'person_display_name', 'person_id'] }),
    );
    const ofId = (id: string): unknown => shown.find(([distinctId]) => distinctId === id)?.slice(1);
    for (const id of ['browser', 'phone', 'ada'])
      expect(ofId(id)).toMatchObject([{ uuid: ada, properties: { plan: 'team' } }, { id: ada }, ada]);
    expect(ofId('carl')).toMatchObject([{ uuid: carl }, { id: carl }, carl]);
    expect(ofId('eve')).toEqual([{ distinct_id: 'eve' }, { display_name: 'eve', id: eve }, eve]);
    expect(ofId('nobody')).toEqual([{ distinct_id: 'nobody' }, { display_name: 'nobody', id: null }, null]);
    const byPlan = trends(
      { math: 'dau' },
      { breakdownFilter: { breakdown: 'plan', breakdown_type: 'person' } },
    );
    const lines = (await resultsOf(byPlan)) as readonly {
      readonly breakdown_value: string;
      readonly data: readonly number[];
    }[];
    expect(lines.map(({ breakdown_value, data }) => [breakdown_value, data[0]]).sort()).toEqual([
      ['$$_posthog_breakdown_null_$$', 1],
      ['free', 3],
      ['team', 1],
    ]);
  });
});
