import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { openApiHarness, type ApiHarness } from '../../http/api_harness.ts';
import { insertShop, person } from '../draft_sql/shop_data.ts';

let api: ApiHarness;
beforeAll(async () => {
  api = await openApiHarness();
  const { pool } = api.database;
  await insertShop(pool, api.projectId, api.otherProjectId);
  await pool.query(
    `insert into public.person_distinct_ids (team_id, distinct_id, person_id, is_deleted)
     values ($1, 'd1', $2, false), ($1, 'ada', $2, false), ($1, 'old', $2, true), ($1, 'd3', $3, false), ($4, 'd2', $3, false)`,
    [api.projectId, person(1), person(3), api.otherProjectId],
  );
});
afterAll(() => api.close());

const runQuery = (query: object, more: object = {}) =>
  api.call('POST', `/api/projects/${api.projectId}/query/`, {
    query: { kind: 'ActorsQuery', ...query },
    ...more,
  });
const resultsOf = async (query: object, more: object = {}) => {
  const { status, body, text } = await runQuery(query, more);
  if (status !== 200) throw new Error(text);
  return body.results;
};

const [ada, bob, eve] = [person(1), person(2), person(3)];
const funnel = {
  kind: 'FunnelsQuery',
  series: [
    { kind: 'EventsNode', event: 'signed_up' },
    { kind: 'EventsNode', event: 'purchase_completed' },
  ],
  dateRange: { date_from: '2026-11-10', date_to: '2026-11-21' },
};
const sql = (query: string) => ({ kind: 'HogQLQuery', query });

describe('ActorsQuery', () => {
  it('lists the persons of the project, without deleted ones', async () => {
    const { body } = await runQuery({});
    expect(body).toMatchObject({
      results: [
        [
          {
            id: ada,
            properties: { email: 'ada@example.com', plan: 'pro' },
            is_identified: null,
            created_at: '2026-11-02T00:00:00Z',
            distinct_ids: ['ada', 'd1'],
          },
          ada,
          1,
        ],
        [{ id: bob, distinct_ids: [] }, bob, 1],
        [{ id: eve, distinct_ids: ['d3'] }, eve, 1],
      ],
      columns: ['person', 'id', 'person.$delete'],
      types: ['JSON', 'UUID', 'Int64'],
      hasMore: false,
      limit: 100,
      offset: 0,
      missing_actors_count: 0,
      dialect_query: expect.stringContaining('FROM persons'),
    });
  });

  it('says whether persons are identified if the source has a column for it', async () => {
    const { pool } = api.database;
    await pool.query('alter table public.persons add column is_identified boolean');
    await pool.query('update public.persons set is_identified = id = $1 where id <> $2', [ada, eve]);
    const listed = await resultsOf({ select: ['person'] });
    await pool.query('alter table public.persons drop column is_identified');
    expect(listed).toMatchObject([
      [{ id: ada, is_identified: true }],
      [{ id: bob, is_identified: false }],
      [{ id: eve, is_identified: null }],
    ]);
  });

  it('supports expressions, aliases, labels, aggregates, search and filters', async () => {
    expect(
      await resultsOf({
        select: ['person_display_name', 'upper(properties.plan) AS plan', 'properties.email -- Mail'],
        search: '@EXAMPLE',
        orderBy: ['created_at DESC'],
      }),
    ).toEqual([
      [{ display_name: 'eve@example.com', id: eve }, 'PRO', 'eve@example.com'],
      [{ display_name: 'ada@example.com', id: ada }, 'PRO', 'ada@example.com'],
    ]);
    const counted = await runQuery({
      select: ['count()', 'properties.plan -- Plan', 'max(created_at) as newest'],
    });
    expect([counted.body.results, counted.body.columns, counted.body.missing_actors_count]).toEqual([
      [
        [2, 'pro', '2026-11-18T00:00:00Z'],
        [1, 'free', '2026-11-10T00:00:00Z'],
      ],
      ['count()', 'properties.plan -- Plan', 'newest'],
      null,
    ]);
    const properties = [{ type: 'person', key: 'plan', value: 'pro' }];
    expect(await resultsOf({ select: ['id'], properties, orderBy: ['person DESC'] })).toEqual([[eve], [ada]]);
    expect(await resultsOf({ select: ['id'] }, { filters_override: { properties } })).toEqual([[ada], [eve]]);
    expect(await resultsOf({ select: ['id'], search: 'ADA' })).toEqual([[ada]]);
    const page = await runQuery({ select: ['id'], limit: 1, offset: 1 });
    expect([page.body.results, page.body.hasMore, page.body.offset]).toEqual([[[bob]], true, 1]);
  });

  it('lists the actors of a dialect query', async () => {
    const source = sql('select person_id, count() as purchases from events group by person_id');
    expect(
      await resultsOf({ source, select: ['properties.email', 'purchases'], orderBy: ['purchases DESC'] }),
    ).toEqual([
      ['ada@example.com', 5],
      ['bob@other.org', 3],
      ['eve@example.com', 2],
    ]);
    expect(
      await resultsOf({ source, properties: [{ type: 'person', key: 'plan', value: 'free' }] }),
    ).toMatchObject([[{ id: bob }, bob, 1]]);
    const unknown = await runQuery({
      source: sql("select distinct_id from events where distinct_id = 'd2'"),
    });
    expect(unknown.body).toMatchObject({
      results: [
        [{ id: 'd2' }, 'd2', 1],
        [{ id: 'd2' }, 'd2', 1],
        [{ id: 'd2' }, 'd2', 1],
      ],
      missing_actors_count: 3,
    });
    expect(
      await resultsOf({
        source: { ...sql('select id from persons where properties.plan = {plan}'), values: { plan: 'free' } },
        select: ['id'],
      }),
    ).toEqual([[bob]]);
  });

  it('lists the actors of a point of a trend', async () => {
    const source = {
      kind: 'InsightActorsQuery',
      source: {
        kind: 'TrendsQuery',
        series: [{ kind: 'EventsNode', event: '$pageview' }],
        dateRange: { date_from: '2026-11-10', date_to: '2026-11-20' },
      },
      day: '2026-11-20',
    };
    expect(await resultsOf({ source })).toMatchObject([
      [{ id: ada, properties: { plan: 'pro' } }, ada, 1, ['d1']],
      [{ id: bob }, bob, 1, ['d2']],
    ]);
    expect(
      await resultsOf({
        source,
        select: ['person_display_name', 'event_count'],
        orderBy: ['event_count DESC'],
      }),
    ).toEqual([
      [{ display_name: 'ada@example.com', id: ada }, 2],
      [{ display_name: 'bob@other.org', id: bob }, 1],
    ]);
    expect(await resultsOf({ source, select: ['count()', 'sum(event_count)'] })).toEqual([[2, 3]]);
  });

  it('lists the actors of a step of a funnel', async () => {
    const of = (funnelStep: number) =>
      resultsOf({
        source: { kind: 'FunnelsActorsQuery', source: funnel, funnelStep },
        select: ['id', 'properties.plan'],
      });
    expect(await of(1)).toEqual([
      [ada, 'pro'],
      [bob, 'free'],
    ]);
    expect(await of(2)).toEqual([[ada, 'pro']]);
    expect(await of(-2)).toEqual([[bob, 'free']]);
  });

  it("applies a dashboard's filters to its source, or to persons", async () => {
    const properties = [{ type: 'event', key: '$browser', value: 'Safari' }];
    const rejected = await runQuery({}, { filters_override: { properties } });
    expect([rejected.status, rejected.body.attr]).toEqual([400, 'filters_override__properties__0__type']);
    const source = { kind: 'FunnelsActorsQuery', source: funnel, funnelStep: 1 };
    expect(await resultsOf({ source, select: ['id'] }, { filters_override: { properties } })).toEqual([
      [bob],
    ]);
  });

  it.each<readonly [string, object, string]>([
    ['an unknown field', { elements: 1 }, 'query__elements'],
    ['a bad expression', { select: ['id', 'propertys.x'] }, 'query__select__1'],
    ['a text that is none', { select: ['id ='] }, 'query__select__0'],
    ['two expressions in one', { select: ['id, created_at'] }, 'query__select__0'],
    ['an unknown field of the order', { orderBy: ['nothing'] }, 'query__orderBy__0'],
    ['a star', { select: ['*'] }, 'query__select__0'],
    ['groups', { select: ['group'] }, 'query__select__0'],
    ['recordings', { select: ['matched_recordings'] }, 'query__select__0'],
    [
      'filters of events',
      { properties: [{ type: 'event', key: 'a', value: 1 }] },
      'query__properties__0__type',
    ],
    ['stickiness', { source: { kind: 'StickinessActorsQuery' } }, 'query__source__kind'],
    ['correlation', { source: { kind: 'FunnelCorrelationActorsQuery' } }, 'query__source__kind'],
    ['a source without an id', { source: sql('select event from events') }, 'query__source__query'],
    ['a source that is wrong', { source: sql('select nothing from events') }, 'query__source__query'],
    [
      'another insight',
      { source: { kind: 'InsightActorsQuery', source: { kind: 'PathsQuery' } } },
      'query__source__source__kind',
    ],
    [
      'a point without a day',
      {
        source: {
          kind: 'InsightActorsQuery',
          source: { kind: 'TrendsQuery', series: [{ kind: 'EventsNode' }] },
        },
      },
      'query__source__day',
    ],
    ['no rows', { limit: 0 }, 'query__limit'],
    [
      'an insight that is wrong',
      {
        source: {
          kind: 'InsightActorsQuery',
          day: '2026-11-20',
          source: { kind: 'TrendsQuery', series: [{ kind: 'ActionsNode', id: 1 }] },
        },
      },
      'query__source__source__series__0__id',
    ],
    [
      'a funnel without a step',
      { source: { kind: 'FunnelsActorsQuery', source: funnel } },
      'query__source__funnelStep',
    ],
  ])('rejects %s with the path of the field', async (_, query, attr) => {
    const { status, body } = await runQuery(query);
    expect([status, body.attr]).toEqual([400, attr]);
  });
});
