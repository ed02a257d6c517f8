import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { openApiHarness, type ApiHarness } from '../../http/api_harness.ts';

const ada = '00000000-0000-0000-0000-00000000ada0';
const carl = '00000000-0000-0000-0000-00000000ca41';
const uuid = (number: number): string => `10000000-0000-0000-0000-00000000000${number}`;
const chain = 'a.link.big:href="/x?a=1;b"nth-child="2"text="Go \\"now\\"";div:attr_id="top"data-x="1"';

let api: ApiHarness;
let now: Date;
const ago = (hours: number): string => new Date(now.getTime() - hours * 3_600_000).toISOString();

// The second event names a person for which its distinct id has no row; the third has no person.
beforeAll(async () => {
  api = await openApiHarness();
  const { pool } = api.database;
  now = new Date();
  const events: readonly (readonly [string, string, string | null, object, number, string | null])[] = [
    ['$pageview', 'ada-1', ada, { $browser: 'Firefox', price: 5 }, 1, chain],
    ['bought', 'carl-1', carl, { $browser: 'Safari', price: '7.5' }, 2, null],
    ['bought', 'anonymous', null, { $browser: 'Firefox' }, 3, null],
    ['bought', 'ada-2', ada, { price: 1 }, 30, null],
  ];
  for (const [index, [event, distinctId, personId, properties, hours, elements]] of events.entries())
    await pool.query(
      `insert into public.events (team_id, uuid, event, distinct_id, person_id, properties, elements_chain, timestamp, created_at)
       values ($1, $2, $3, $4, $5, $6, $7, $8, '2026-11-01T10:00:00Z')`,
      [api.projectId, uuid(index + 1), event, distinctId, personId, properties, elements ?? '', ago(hours)],
    );
  await pool.query(
    `insert into public.persons (team_id, id, properties, created_at) values
       ($1, $2, '{"email": "ada@ex.com", "name": "Ada"}', '2026-01-01Z'), ($1, $3, '{"name": "Carl"}', '2026-01-02Z')`,
    [api.projectId, ada, carl],
  );
  await pool.query(
    `insert into public.person_distinct_ids (team_id, distinct_id, person_id) values ($1, 'ada-1', $2), ($1, 'ada-2', $2)`,
    [api.projectId, ada],
  );
  await pool.query(
    `insert into public.events (team_id, uuid, event, distinct_id, properties, timestamp)
     values ($1, gen_random_uuid(), 'bought', 'other team', '{}', $2)`,
    [api.otherProjectId, ago(1)],
  );
  await pool.query(`update exportd.projects set test_account_filters = $2 where id = $1`, [
    api.projectId,
    JSON.stringify([{ type: 'person', key: 'email', operator: 'not_icontains', value: '@ex.com' }]),
  ]);
});
afterAll(() => api.close());

const runQuery = (query: object, fields: object = {}) =>
  api.call('POST', `/api/projects/${api.projectId}/query/`, {
    query: { kind: 'EventsQuery', ...query },
    ...fields,
  });
const resultsOf = async (query: object, fields: object = {}): Promise<unknown> => {
  const { status, body } = await runQuery(query, fields);
  expect([status, body.detail]).toEqual([200, undefined]);
  return body.results;
};

describe('EventsQuery', () => {
  it('returns whole events with their persons, of the last day by default, newest first', async () => {
    const { status, body } = await runQuery({
      select: ['*', 'person', 'person_display_name -- Person', 'timestamp', 'properties.price AS price'],
    });
    const event = (number: number) => expect.objectContaining({ uuid: uuid(number) }) as unknown;
    const time = expect.stringMatching(/^\d{4}-.*Z$/) as unknown;
    expect([status, body]).toMatchObject([
      200,
      {
        columns: ['*', 'person', 'person_display_name -- Person', 'timestamp', 'price'],
        types: [
          expect.stringMatching(/^Tuple\(uuid UUID, event String, properties JSON, timestamp DateTime64/),
          'JSON',
          'Tuple(display_name String, id Nullable(UUID))',
          expect.stringContaining('DateTime64'),
          'Nullable(String)',
        ],
        hasMore: false,
        limit: 100,
        offset: 0,
        is_cached: false,
        dialect_query: expect.stringMatching(/^SELECT .* ORDER BY timestamp DESC, events.uuid/),
        results: [
          [
            event(1),
            {
              uuid: ada,
              created_at: '2026-01-01T00:00:00Z',
              properties: { email: 'ada@ex.com', name: 'Ada' },
              distinct_id: 'ada-1',
            },
            { display_name: 'ada@ex.com', id: ada },
            time,
            '5',
          ],
          [
            event(2),
            { uuid: carl, properties: { name: 'Carl' }, distinct_id: 'carl-1' },
            { display_name: 'Carl', id: carl },
            time,
            '7.5',
          ],
          [event(3), { distinct_id: 'anonymous' }, { display_name: 'anonymous', id: null }, time, null],
        ],
      },
    ]);
  });

  it('pages through events of one millisecond by `before` and `after` without losing any', async () => {
    await api.database.pool.query(
      `insert into public.events (team_id, uuid, event, distinct_id, properties, timestamp)
       select $1, gen_random_uuid(), 'close', n::text, '{}', $2::timestamptz + make_interval(secs => n / 1e6)
       from generate_series(1, 9) n`,
      [api.projectId, '2026-02-01T00:00:00.123Z'],
    );
    const select = ['distinct_id', 'timestamp'];
    const query = { select, event: 'close', after: 'all', limit: 3 };
    const seen: unknown[] = [];
    for (let before: unknown; seen.length <= 9;) {
      const page = (await resultsOf({ ...query, ...(before !== undefined && { before }) })) as unknown[][];
      if (page.length === 0) break;
      seen.push(...page.map(([id]) => id));
      before = page.at(-1)?.[1];
    }
    expect(seen).toEqual(['9', '8', '7', '6', '5', '4', '3', '2', '1']);
    const later = await resultsOf({
      ...query,
      after: '2026-02-01T01:00:00.123007+01:00',
      select: ['distinct_id'],
      orderBy: ['timestamp DESC'],
    });
    expect(later).toEqual([['9'], ['8']]);
    await api.database.pool.query("delete from public.events where event = 'close'");
  });

  it("returns the elements of an event's chain", async () => {
    expect(await resultsOf({ select: [], event: '$pageview' })).toEqual([
      [
        {
          uuid: uuid(1),
          event: '$pageview',
          properties: { $browser: 'Firefox', price: 5 },
          timestamp: expect.any(String),
          team_id: api.projectId,
          distinct_id: 'ada-1',
          elements_chain: chain,
          created_at: '2026-11-01T10:00:00Z',
          elements: [
            {
              order: 0,
              tag_name: 'a',
              attr_class: ['link', 'big'],
              text: 'Go "now"',
              href: '/x?a=1;b',
              attr_id: null,
              nth_child: 2,
              nth_of_type: null,
              attributes: {},
            },
            {
              order: 1,
              tag_name: 'div',
              attr_class: null,
              text: null,
              href: null,
              attr_id: 'top',
              nth_child: null,
              nth_of_type: null,
              attributes: { 'data-x': '1' },
            },
          ],
        },
      ],
    ]);
  });

  it.each([
    [
      { select: ['event', 'count() -- Events'] },
      [
        ['bought', 2],
        ['$pageview', 1],
      ],
    ],
    [
      { select: ['event', 'sum(toFloat(properties.price)) as total'], after: '-2d' },
      [
        ['bought', 8.5],
        ['$pageview', 5],
      ],
    ],
    [{ select: ['event', 'count()'], where: ['count() > 1', "event != 'x'"] }, [['bought', 2]]],
    [{ select: ['properties.$browser'], where: ['count() > 1'] }, [['Firefox']]],
    [
      { select: ['person_display_name', 'count()'], after: 'all' },
      [
        [{ display_name: 'ada@ex.com', id: ada }, 1],
        [{ display_name: 'ada@ex.com', id: ada }, 1],
        [{ display_name: 'anonymous', id: null }, 1],
        [{ display_name: 'Carl', id: carl }, 1],
      ],
    ],
    [{ select: ['count()'] }, [[3]]],
    [
      { select: ['event', 'count()'], orderBy: ['event'] },
      [
        ['$pageview', 1],
        ['bought', 2],
      ],
    ],
    [{ select: ['uuid'], orderBy: ['timestamp ASC'] }, [[uuid(3)], [uuid(2)], [uuid(1)]]],
    [{ select: ['uuid'], orderBy: ['person_display_name DESC'] }, [[uuid(3)], [uuid(1)], [uuid(2)]]],
    [{ select: ['distinct_id'] }, [['ada-1'], ['anonymous'], ['carl-1']]],
    [{ select: ['uuid'], after: 'all' }, [[uuid(1)], [uuid(2)], [uuid(3)], [uuid(4)]]],
    [{ select: ['uuid'], after: '-48h', before: '-12h' }, [[uuid(4)]]],
    [{ select: ['uuid'], personId: ada, after: '-7d' }, [[uuid(1)], [uuid(4)]]],
    [{ select: ['uuid'], filterTestAccounts: true }, [[uuid(2)], [uuid(3)]]],
    [
      { select: ['uuid'], properties: [{ type: 'event', key: 'price', operator: 'gt', value: 5 }] },
      [[uuid(2)]],
    ],
    [
      {
        select: ['uuid'],
        properties: [{ type: 'event', key: '$browser', value: 'Firefox' }],
        fixedProperties: {
          type: 'OR',
          values: [
            { type: 'person', key: 'name', value: ['Ada'] },
            { type: 'event_metadata', key: 'distinct_id', value: 'x' },
          ],
        },
      },
      [[uuid(1)]],
    ],
    // An alias does not change the meaning of other fields.
    [
      {
        select: ["'x' as event", "'y' as properties"],
        event: 'bought',
        properties: [{ key: '$browser', value: 'Safari' }],
      },
      [['x', 'y']],
    ],
  ])('%j', async (query, results) => {
    expect(await resultsOf(query)).toEqual(results);
  });

  it('respects limit and offset', async () => {
    const first = await runQuery({ select: ['uuid', 'timestamp'], limit: 2 });
    const second = await runQuery({ select: ['uuid', 'timestamp'], limit: 2, offset: 2 });
    const ids = [first, second].map(({ body }) => (body.results as string[][]).map(([id]) => id));
    expect([first.body.hasMore, first.body.limit, second.body.hasMore, second.body.offset, ids]).toEqual([
      true,
      2,
      false,
      2,
      [[uuid(1), uuid(2)], [uuid(3)]],
    ]);
  });

  it("applies a dashboard's dates and filters, and shares a result between equivalent queries", async () => {
    const query = { select: ['uuid'], properties: [{ key: '$browser', value: 'Firefox' }] };
    const filters_override = {
      date_from: '-7d',
      date_to: now.toISOString().slice(0, 10),
      properties: [{ key: 'price', operator: 'is_not_set' }],
    };
    expect(await resultsOf(query, { filters_override })).toEqual([[uuid(3)]]);
    const again = await runQuery({ ...query, name: 'The same' }, { filters_override });
    expect(again.body.is_cached).toBe(true);
  });

  it.each([
    [{ select: ['uuid', 'properties.'] }, 'dialect_error', 'query__select__1'],
    [{ select: ['evnt'] }, 'dialect_error', 'query__select__0'],
    [{ select: ['* EXCLUDE (event)'] }, 'not_supported', 'query__select__0'],
    [{ select: ['uuid'], where: ['true', 'evnt = 1'] }, 'dialect_error', 'query__where__1'],
    [{ select: ['uuid'], where: ['count() > nothing'] }, 'dialect_error', 'query__where__0'],
    [{ select: ['uuid'], orderBy: ['tmestamp'] }, 'dialect_error', 'query__orderBy__0'],
    [{ select: ['uuid'], orderBy: ['2'] }, 'invalid_input', 'query__orderBy__0'],
    [
      { select: ['uuid'], properties: [{ type: 'hogql', key: 'evnt = 1' }] },
      'dialect_error',
      'query__properties__0__key',
    ],
    [
      { select: ['uuid'], properties: [{ type: 'cohort', key: 'id', value: 1 }] },
      'invalid_input',
      'query__properties__0__value',
    ],
    [
      { select: ['uuid'], properties: [{ type: 'magic', key: 'id' }] },
      'invalid_input',
      'query__properties__0__type',
    ],
    [{ select: ['uuid'], actionId: 4 }, 'invalid_input', 'query__actionId'],
    [{ select: ['uuid'], personId: '17' }, 'invalid_input', 'query__personId'],
    [{ select: ['uuid'], after: 'soon' }, 'invalid_input', 'query__after'],
    [{ select: ['uuid'], before: 'all' }, 'invalid_input', 'query__before'],
    [{}, 'required', 'query__select'],
    [{ select: ['uuid'], having: [] }, 'invalid_input', 'query__having'],
    [{ select: ['uuid'], limit: 0 }, 'invalid_input', 'query__limit'],
  ])('rejects by name: %j', async (query, code, attr) => {
    const { status, body } = await runQuery(query);
    expect([status, body]).toMatchObject([400, { code, attr }]);
  });

  const point = (more: object, ofTrends: object = {}) => ({
    kind: 'InsightActorsQuery',
    source: {
      kind: 'TrendsQuery',
      series: [{ kind: 'EventsNode', event: 'bought' }],
      dateRange: { date_from: '-7d' },
      trendsFilter: { display: 'BoldNumber' },
      ...ofTrends,
    },
    ...more,
  });

  it('returns the events behind a point of a trend, also older ones and those without a person', async () => {
    const select = ['uuid', 'distinct_id'];
    expect(await resultsOf({ select, source: point({}) })).toEqual([
      [uuid(2), 'carl-1'],
      [uuid(3), 'anonymous'],
      [uuid(4), 'ada-2'],
    ]);
    const breakdownFilter = { breakdown: '$browser', breakdown_type: 'event' };
    const source = point({ breakdown: 'Firefox' }, { breakdownFilter });
    expect(await resultsOf({ select, source, after: '-24h' })).toEqual([[uuid(3), 'anonymous']]);
  });

  it.each([
    [point({ day: '2026-01-01' }), 'query__source__day'],
    [point({ series: 3 }), 'query__source__series'],
    [point({}, { dateRange: { date_from: 'soon' } }), 'query__source__source__dateRange__date_from'],
    [{ kind: 'InsightActorsQuery', source: { kind: 'LifecycleQuery' } }, 'query__source__source__kind'],
  ])('rejects an invalid point: %j', async (source, attr) => {
    const { status, body } = await runQuery({ select: ['uuid'], source });
    expect([status, body]).toMatchObject([400, { attr }]);
  });

  it("rejects a dashboard's filters by name", async () => {
    const { status, body } = await runQuery(
      { select: ['uuid'] },
      { filters_override: { date_from: 'soon' } },
    );
    expect([status, body]).toMatchObject([400, { attr: 'filters_override__date_from' }]);
  });
});
