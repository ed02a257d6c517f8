import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { openApiHarness, type ApiHarness } from '../../http/api_harness.ts';

let api: ApiHarness;
beforeAll(async () => {
  api = await openApiHarness();
  // Four events on each of three days, of two persons; prices from 1 to 12.
  await api.database.pool.query(
    `insert into public.events (team_id, uuid, event, distinct_id, person_id, properties, timestamp)
     select team, gen_random_uuid(), case when n % 2 = 0 then '$pageview' else 'bought' end, 'user ' || n % 2,
       ('00000000-0000-0000-0000-00000000000' || n % 2)::uuid,
       jsonb_build_object('price', n, 'browser', case when n % 4 < 3 then 'Chrome' || n % 4 end, 'paid', n > 6),
       timestamptz '2024-03-03 06:00:00.25+00' + (n - 1) * interval '6 hours'
     from unnest(array[$1::integer, $2]) team, generate_series(1, 12) n`,
    [api.projectId, api.otherProjectId],
  );
});
afterAll(() => api.close());

const dateRange = { date_from: '2024-03-03', date_to: '2024-03-06' };
const pageviews = { kind: 'EventsNode', event: '$pageview' };
const bought = { kind: 'EventsNode', event: 'bought' };

const runQuery = (query: object, more: object = {}) =>
  api.call('POST', `/api/projects/${api.projectId}/query/`, {
    query: { kind: 'TrendsQuery', series: [pageviews], dateRange, ...query },
    ...more,
  });

describe('results of TrendsQuery', () => {
  it('have a point and a label for each day, also without events', async () => {
    const { status, body } = await runQuery({
      series: [{ ...pageviews, custom_name: 'Views', math: 'dau' }],
    });
    expect([status, body]).toMatchObject([
      200,
      {
        results: [
          {
            label: '$pageview',
            data: [1, 1, 1, 1],
            count: 4,
            days: ['2024-03-03', '2024-03-04', '2024-03-05', '2024-03-06'],
            labels: ['3-Mar-2024', '4-Mar-2024', '5-Mar-2024', '6-Mar-2024'],
            order: 0,
            action: {
              id: '$pageview',
              name: '$pageview',
              custom_name: 'Views',
              type: 'events',
              order: 0,
              math: 'dau',
              math_property: null,
              math_hogql: null,
              math_group_type_index: null,
              days: ['2024-03-03', '2024-03-04', '2024-03-05', '2024-03-06'],
              properties: [],
            },
            filter: { insight: 'TRENDS', interval: 'day', date_from: '2024-03-03', date_to: '2024-03-06' },
          },
        ],
        hasMore: false,
        is_cached: false,
        timezone: 'UTC',
        resolved_date_range: {
          date_from: '2024-03-03T00:00:00.000Z',
          date_to: '2024-03-06T23:59:59.999Z',
        },
        dialect_query: expect.stringContaining('GROUP BY'),
      },
    ]);
  });

  it('have at most 200,000 values in all lines', async () => {
    await api.database.pool.query(
      `insert into public.events (team_id, uuid, event, distinct_id, properties, timestamp)
       select $1, gen_random_uuid(), 'many', 'd', jsonb_build_object('n', n), '2024-06-01' from generate_series(1, 12) n`,
      [api.projectId],
    );
    const query = (breakdown_limit: number, more: object = {}) =>
      runQuery({
        series: [{ kind: 'EventsNode', event: 'many' }],
        dateRange: { date_from: '2024-06-01', date_to: '2024-06-13' },
        interval: 'minute',
        breakdownFilter: { breakdown: 'n', breakdown_limit },
        ...more,
      });
    const few = await query(2);
    expect([few.status, (few.body.results as unknown[]).length]).toEqual([200, 3]);
    const error = {
      attr: 'query__interval',
      detail: expect.stringContaining('more than 200000 values') as unknown,
    };
    expect(await query(20)).toMatchObject({ status: 400, body: error });
    expect(
      await query(4, { compareFilter: { compare: true }, series: Array(3).fill(pageviews) }),
    ).toMatchObject({ status: 200 });
    const lines = Array(3).fill({ kind: 'EventsNode', event: 'many' });
    expect(await query(4, { series: lines })).toMatchObject({ status: 400, body: error });
  });

  it('count totals: 1, 2, 2, 1 views on three days that start at six', async () => {
    const { body } = await runQuery({});
    expect(body.results).toMatchObject([{ data: [1, 2, 2, 1], count: 6 }]);
    const cumulative = await runQuery({ trendsFilter: { display: 'ActionsLineGraphCumulative' } });
    expect(cumulative.body.results).toMatchObject([{ data: [1, 3, 5, 6], count: 6 }]);
    const smooth = await runQuery({ trendsFilter: { smoothingIntervals: 2 } });
    expect(smooth.body.results).toMatchObject([{ data: [1, 1, 2, 1], count: 5 }]);
    const total = await runQuery({ trendsFilter: { display: 'BoldNumber' } });
    expect(total.body.results).toMatchObject([
      { aggregated_value: 6, data: [], days: [], labels: [], count: 0 },
    ]);
  });

  it('have a line for each breakdown value, then one without a value, then one for all others', async () => {
    const one = await runQuery({
      breakdownFilter: { breakdown: 'browser' },
      series: [{ kind: 'EventsNode' }],
    });
    expect(one.body.results).toMatchObject([
      { label: 'Chrome0', breakdown_value: 'Chrome0', data: [0, 1, 1, 1] },
      { label: 'Chrome1', breakdown_value: 'Chrome1', data: [1, 1, 1, 0] },
      { label: 'Chrome2', breakdown_value: 'Chrome2', data: [1, 1, 1, 0] },
      {
        label: 'None (i.e. no value)',
        breakdown_value: '$$_posthog_breakdown_null_$$',
        data: [1, 1, 1, 0],
      },
    ]);
    const cut = await runQuery({
      breakdownFilter: { breakdowns: [{ property: 'browser' }, { property: 'paid' }], breakdown_limit: 1 },
      series: [{ kind: 'EventsNode', math: 'avg', math_property: 'price' }, bought],
    });
    const others = ['$$_posthog_breakdown_other_$$', '$$_posthog_breakdown_other_$$'];
    expect([cut.body.hasMore, cut.body.results]).toMatchObject([
      true,
      [
        {
          label: 'All events - Chrome0::true',
          breakdown_value: ['Chrome0', 'true'],
          data: [0, 0, 8, 12],
          order: 0,
        },
        { breakdown_value: others, data: [2, 5.5, 10, 0], order: 0 },
        { label: 'bought - None (i.e. no value)::true', data: [0, 1, 1, 0], order: 1 },
        { breakdown_value: others, data: [2, 1, 1, 0], order: 1 },
      ],
    ]);
  });

  it('assign numbers to bins of equal width, the last one slightly wider', async () => {
    const { body } = await runQuery({
      breakdownFilter: { breakdown: 'price', breakdown_histogram_bin_count: 2 },
      series: [{ kind: 'EventsNode' }],
    });
    expect(body.results).toMatchObject([
      { label: '[1,6.5]', data: [3, 3, 0, 0] },
      { label: '[6.5,12.01]', data: [0, 1, 4, 1] },
    ]);
  });

  it('have one line for each formula, without an action', async () => {
    const formulaNodes = [{ formula: 'A / (B - B)' }, { formula: 'B * 2 + 1', custom_name: 'Twice' }];
    const { body } = await runQuery({ series: [pageviews, bought], trendsFilter: { formulaNodes } });
    expect(body.results).toMatchObject([
      { label: 'Formula (A / (B - B))', action: null, data: [0, 0, 0, 0], order: 0 },
      { label: 'Twice', action: null, data: [5, 5, 5, 1], count: 16, order: 1 },
    ]);
  });

  it('compute a formula over the same values of all its series, although each has other top values', async () => {
    const properties = [{ type: 'event', key: 'price', operator: 'gt', value: 4 }];
    const { body } = await runQuery({
      series: [pageviews, { ...bought, properties }],
      breakdownFilter: {
        breakdown: 'toInt(properties.price) % 3',
        breakdown_type: 'hogql',
        breakdown_limit: 1,
      },
      trendsFilter: { formula: 'A / B', display: 'ActionsTable' },
    });
    expect(body.results).toMatchObject([
      { breakdown_value: '0', aggregated_value: 2 },
      { breakdown_value: '2', aggregated_value: 1 },
      { breakdown_value: '$$_posthog_breakdown_other_$$', aggregated_value: 2 },
    ]);
    expect(body.hasMore).toBe(true);
  });

  it('contain the current range before the one that it is compared with', async () => {
    const { body } = await runQuery({
      dateRange: { date_from: '2024-03-05', date_to: '2024-03-06' },
      compareFilter: { compare: true },
    });
    expect(body.results).toMatchObject([
      { compare: true, compare_label: 'current', data: [2, 1], days: ['2024-03-05', '2024-03-06'] },
      { compare: true, compare_label: 'previous', data: [1, 2], days: ['2024-03-03', '2024-03-04'] },
    ]);
  });

  it('come from the cache for queries that differ only in presentation', async () => {
    const look = {
      showLegend: true,
      aggregationAxisFormat: 'duration',
      display: 'ActionsBar',
      goalLines: [],
    };
    const first = await runQuery({ interval: 'week' });
    const again = await runQuery({
      interval: 'week',
      trendsFilter: look,
      tags: { a: 1 },
    });
    expect([again.body.is_cached, again.body.cache_key]).toEqual([true, first.body.cache_key]);
    const other = await runQuery({ interval: 'week', trendsFilter: { display: 'BoldNumber' } });
    expect(other.body.is_cached).toBe(false);
  });

  it("are narrowed by a dashboard's filters", async () => {
    const { body } = await runQuery(
      {},
      {
        filters_override: {
          date_from: '2024-03-04',
          date_to: '2024-03-05',
          properties: [{ key: 'browser', value: 'Chrome2', type: 'event' }],
        },
      },
    );
    expect(body.results).toMatchObject([{ data: [1, 1], days: ['2024-03-04', '2024-03-05'] }]);
  });
});

describe('invalid queries are rejected with the path of their field', () => {
  const series = (fields: object) => ({ series: [pageviews, { ...bought, ...fields }] });
  it.each([
    [{ series: [] }, 'query__series'],
    [{ series: [{ kind: 'ActionsNode', id: 3 }] }, 'query__series__0__id'],
    [series({ math: 'avg' }), 'query__series__1__math_property'],
    [series({ math: 'unique_group' }), 'query__series__1__math_group_type_index'],
    [series({ math: 'hogql' }), 'query__series__1__math_hogql'],
    [series({ math: 'hogql', math_hogql: 'sum(' }), 'query__series__1__math_hogql'],
    [series({ math: 'hogql', math_hogql: 'sum(no_field)' }), 'query__series__1__math_hogql'],
    [series({ math: 'dialect', math_dialect: 'any(event)' }), 'query__series__1__math_hogql'],
    [series({ math: 'mode' }), 'query__series__1__math'],
    [{ interval: 'decade' }, 'query__interval'],
    [{ samplingFactor: 1.5 }, 'query__samplingFactor'],
    [{ samplingFactor: -0.1 }, 'query__samplingFactor'],
    [{ aggregation_group_type_index: 5 }, 'query__aggregation_group_type_index'],
    [
      { breakdownFilter: { breakdown: [1, 2], breakdown_type: 'cohort' } },
      'query__breakdownFilter__breakdown',
    ],
    [
      { breakdownFilter: { breakdown: 'x', breakdown_type: 'event_metadata' } },
      'query__breakdownFilter__breakdown',
    ],
    [
      { breakdownFilter: { breakdowns: [{ property: 'f(', type: 'hogql' }] } },
      'query__breakdownFilter__breakdowns__0',
    ],
    [
      { breakdownFilter: { breakdowns: Array.from('abcd', (property) => ({ property })) } },
      'query__breakdownFilter__breakdowns',
    ],
    [{ trendsFilter: { formula: 'A / D' } }, 'query__trendsFilter__formula'],
    [{ trendsFilter: { formulas: ['A', 'A +'] } }, 'query__trendsFilter__formulas__1'],
    [
      { trendsFilter: { formulaNodes: [{ formula: 'now()' }] } },
      'query__trendsFilter__formulaNodes__0__formula',
    ],
    [{ trendsFilter: { display: 'CalendarHeatmap' } }, 'query__trendsFilter__display'],
    [{ compareFilter: { compare: true, compare_to: 'soon' } }, 'query__compareFilter__compare_to'],
    [{ dateRange: { date_from: 'yesterday-ish' } }, 'query__dateRange__date_from'],
    [{ colour: 'red' }, 'query__colour'],
  ])('%j', async (query, attr) => {
    const { status, body } = await runQuery(query);
    expect([status, body.attr]).toEqual([400, attr]);
    expect(String(body.detail)).toMatch(/\w{3,} \w{2,}/);
  });
});
