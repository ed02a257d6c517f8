import { beforeAll, describe, expect, it } from '@jest/globals';
import { useTestDatabase } from '../../setup/use_test_database.ts';
import { runActorsQuery } from './run_actors_query.ts';

const teamId = 1;
const database = useTestDatabase();
beforeAll(async () => {
  await database.pool.query(
    `insert into public.events (team_id, uuid, event, distinct_id, properties, timestamp)
     select $1, gen_random_uuid(), event, who, jsonb_build_object('$group_0', organisation, '$group_2', team), time::timestamptz
     from (values
       ('came', 'd1', 'acme', 'blue', '2026-11-20T09:00Z'), ('came', 'd2', 'acme', 'red', '2026-11-20T10:00Z'),
       ('bought', 'd2', 'acme', 'red', '2026-11-20T11:00Z'), ('came', 'd3', 'globex', 'blue', '2026-11-20T12:00Z'),
       ('came', 'd4', 'gone', 'green', '2026-11-20T13:00Z'), ('came', 'd5', '', null, '2026-11-20T14:00Z')
     ) as given (event, who, organisation, team, time)`,
    [teamId],
  );
  await database.pool.query(
    `insert into public.groups (team_id, group_type_index, group_key, group_properties, created_at)
     select coalesce(team, $1), type, key, properties::jsonb, created::timestamptz
     from (values
       (null, 0, 'acme', '{"name": "Acme Corp", "plan": "pro", "seats": 9}', '2026-11-01Z'),
       (null, 0, 'globex', '{"name": "Globex", "plan": "free", "seats": 30}', '2026-11-03Z'),
       (null, 0, 'silent', '{}', '2026-11-03Z'),
       (null, 2, 'blue', '{"name": "Blue team"}', '2026-11-04Z'), (null, 2, 'acme', '{"name": "No organisation"}', '2026-11-04Z'),
       (2, 0, 'acme', '{"name": "Secret", "plan": "pro"}', '2026-11-05Z'), (2, 0, 'gone', '{"name": "Secret", "plan": "pro"}', '2026-11-05Z')
     ) as given (team, type, key, properties, created)`,
    [teamId],
  );
});

const runQuery = (query: object) => runActorsQuery(database.pool, teamId, query);
const resultsOf = async (query: object) => (await runQuery(query)).results;

const [acme, globex, blue] = [
  {
    id: 'acme',
    type: 'group',
    created_at: '2026-11-01T00:00:00Z',
    properties: { name: 'Acme Corp', plan: 'pro', seats: 9 },
  },
  {
    id: 'globex',
    type: 'group',
    created_at: '2026-11-03T00:00:00Z',
    properties: { name: 'Globex', plan: 'free', seats: 30 },
  },
  {
    id: 'blue',
    type: 'group',
    created_at: '2026-11-04T00:00:00Z',
    properties: { name: 'Blue team' },
  },
];

const dateRange = { date_from: '2026-11-18', date_to: '2026-11-21' };
const cameOn20th = {
  kind: 'InsightActorsQuery',
  source: {
    kind: 'TrendsQuery',
    series: [{ kind: 'EventsNode', event: 'came', math: 'unique_group', math_group_type_index: 0 }],
    dateRange,
  },
  day: '2026-11-20',
};
const sql = (query: string) => ({ kind: 'DialectQuery', query });

describe('Actors that are groups', () => {
  it('are those that a point of a trend counts', async () => {
    expect(await runQuery({ source: cameOn20th })).toMatchObject({
      columns: ['group'],
      types: ['JSON'],
      results: [[acme], [globex], [{ id: 'gone' }]],
      more: { missing_actors_count: 1 },
    });
    const breakdownFilter = { breakdown: 'plan', breakdown_type: 'group', breakdown_group_type_index: 0 };
    const source = { ...cameOn20th, source: { ...cameOn20th.source, breakdownFilter }, breakdown: 'pro' };
    expect(await resultsOf({ source, select: ['id', 'event_count', 'event_distinct_ids'] })).toEqual([
      ['acme', 2, ['d1', 'd2']],
    ]);
  });

  it('are those of a type that did a step of a funnel', async () => {
    const of = (index: number, funnelStep: number) =>
      resultsOf({
        source: {
          kind: 'FunnelsActorsQuery',
          source: {
            kind: 'FunnelsQuery',
            series: ['came', 'bought'].map((event) => ({ kind: 'EventsNode', event })),
            dateRange,
            aggregation_group_type_index: index,
          },
          funnelStep,
        },
        select: ['actor'],
      });
    expect(await of(0, 2)).toEqual([[acme]]);
    expect(await of(0, -2)).toEqual([[globex], [{ id: 'gone' }]]);
    expect(await of(2, 1)).toEqual([[blue], [{ id: 'green' }], [{ id: 'red' }]]);
  });

  it('are those of a dialect query that returns their keys', async () => {
    const source = sql(
      "select $group_0 as group_key, count() as times, 'x' as created_at from events where $group_0 != '' group by 1",
    );
    expect(
      await resultsOf({ source, select: ['group', 'times', 'created_at'], orderBy: ['times DESC', 'key'] }),
    ).toEqual([
      [acme, 3, '2026-11-01T00:00:00Z'],
      [globex, 1, '2026-11-03T00:00:00Z'],
      [{ id: 'gone' }, 1, null],
    ]);
    expect(
      await resultsOf({
        source: sql("select distinct $group_2, 'd' as did from events where distinct_id = 'd1'"),
      }),
    ).toEqual([[blue]]);
    expect(await resultsOf({ source: sql('select person_id, $group_0 from events limit 1') })).toEqual([
      [{ id: null }, null, 1],
    ]);
  });

  it('are selected, sorted, paged and counted like persons', async () => {
    const source = cameOn20th;
    const select = [
      'id',
      'key',
      'actor.key',
      'index',
      'properties.name',
      '`group`.properties.plan -- Plan',
      'toInt(actor.properties.seats) * 2 AS twice',
    ];
    expect(await runQuery({ source, select, orderBy: ['actor DESC'], limit: 2 })).toMatchObject({
      columns: [...select.slice(0, -1), 'twice'],
      results: [
        ['globex', 'globex', 'globex', 0, 'Globex', 'free', 60],
        ['acme', 'acme', 'acme', 0, 'Acme Corp', 'pro', 18],
      ],
      hasMore: true,
    });
    expect(await resultsOf({ source, select, orderBy: ['Group desc'], offset: 2 })).toEqual([
      ['gone', 'gone', 'gone', null, null, null, null],
    ]);
    expect(await resultsOf({ source, select: ['count()', 'properties.plan is not null as known'] })).toEqual([
      [2, true],
      [1, false],
    ]);
  });

  it.each([
    [{ search: 'CORP' }, ['acme']],
    [{ search: 'g' }, ['globex', 'gone']],
    [{ search: 'd1' }, []],
    [{ properties: [{ type: 'group', key: 'plan', value: 'pro' }] }, ['acme']],
    [{ properties: [{ type: 'group', key: 'plan', operator: 'is_not', value: 'pro' }] }, ['globex', 'gone']],
    [
      { fixedProperties: [{ type: 'group', key: 'seats', operator: 'gt', value: 9, group_type_index: 0 }] },
      ['globex'],
    ],
    [{ properties: [{ type: 'group', key: '$group_key', value: 'gone' }] }, ['gone']],
    [
      { properties: [{ type: 'group', key: '$group_0', operator: 'icontains', value: 'O' }] },
      ['globex', 'gone'],
    ],
    [{ properties: [{ type: 'hogql', key: "properties.name = 'Globex'" }] }, ['globex']],
  ])('are found by %j', async (query, found) => {
    const results = await resultsOf({ source: cameOn20th, select: ['id'], ...query });
    expect(results).toEqual(found.map((key) => [key]));
  });

  it.each([
    [{ select: ['id', 'person'] }, 'query__select__1', 'These actors are groups. Select group instead.'],
    [
      { select: ['person_display_name'] },
      'query__select__0',
      'These actors are groups. Select group instead.',
    ],
    [{ select: ['person.$delete'] }, 'query__select__0', 'These actors are groups. Select group instead.'],
    [{ select: ['group', 'person.properties.plan'] }, 'query__select__1', 'Unable to resolve field: person'],
    [{ orderBy: ['key', 'nothing'] }, 'query__orderBy__1', 'Unable to resolve field: nothing'],
    [
      { properties: [{ type: 'person', key: 'plan', value: 'pro' }] },
      'query__properties__0__type',
      'Only filters of type group or hogql are supported here.',
    ],
    [
      { properties: [{ type: 'group', key: 'plan', value: 'pro', group_type_index: 1 }] },
      'query__properties__0__group_type_index',
      'The actors are groups of type 0.',
    ],
    [
      { fixedProperties: [{ type: 'hogql', key: 'nothing = 1' }] },
      'query__fixedProperties__0__key',
      'Unable to resolve field: nothing',
    ],
    [
      {
        source: {
          ...cameOn20th,
          source: { ...cameOn20th.source, series: [{ kind: 'EventsNode', math: 'unique_group' }] },
        },
      },
      'query__source__source__series__0__math_group_type_index',
      'math unique_group requires math_group_type_index.',
    ],
  ])('are rejected with the path of the field: %j', async (query, attr, words) => {
    await expect(runQuery({ source: cameOn20th, ...query })).rejects.toMatchObject({
      attr,
      message: expect.stringContaining(words),
    });
  });
});
