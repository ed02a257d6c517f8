import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { openApiHarness, type ApiHarness } from '../../http/api_harness.ts';

let api: ApiHarness;
// Four events on two days in Berlin: the third is at half past midnight there.
beforeAll(async () => {
  api = await openApiHarness();
  const { pool } = api.database;
  await pool.query(
    `update exportd.projects set timezone = 'Europe/Berlin', test_account_filters = $2 where id = $1`,
    [api.projectId, JSON.stringify([{ type: 'event', key: 'plan', operator: 'is_not', value: 'staff' }])],
  );
  await pool.query(
    `insert into public.events (team_id, uuid, event, distinct_id, properties, timestamp)
     select team, gen_random_uuid(), name, 'd', properties::jsonb, at::timestamptz
     from unnest(array[$1, $2]::integer[]) as team,
       (values ('a', '{"plan": "pro", "$session_id": "s1"}', '2026-11-19T10:00:00Z'),
               ('b', '{"plan": "free", "$session_id": "s1"}', '2026-11-19T10:02:00Z'),
               ('c', '{"plan": "pro", "$session_id": "s2"}', '2026-11-19T23:30:00Z'),
               ('d', '{"plan": "staff", "$session_id": "s3"}', '2026-11-20T12:00:00Z')) as rows (name, properties, at)`,
    [api.projectId, api.otherProjectId],
  );
  await pool.query(
    `insert into public.groups (team_id, group_type_index, group_key, group_properties, created_at)
     select team, index, key, properties::jsonb, at::timestamptz
     from unnest(array[$1, $2]::integer[]) as team,
       (values (0, 'g', '{"seats": 3}', '2026-11-19T10:00:00Z'),
               (0, 'h', '{"seats": 30}', '2026-11-20T12:00:00Z'),
               (1, 'g', '{"seats": 300}', '2026-11-20T12:00:00Z')) as rows (index, key, properties, at)`,
    [api.projectId, api.otherProjectId],
  );
  await pool.query(
    'insert into public.cohort_people (team_id, cohort_id, person_id) values ($1, 5, gen_random_uuid())',
    [api.projectId],
  );
});
afterAll(() => api.close());

const runQuery = (query: string, filters?: object, fields: object = {}) =>
  api.call('POST', `/api/projects/${api.projectId}/query/`, {
    query: { kind: 'DialectQuery', query, ...(filters && { filters }) },
    ...fields,
  });
const namesOf = async (query: string, filters?: object, fields: object = {}): Promise<string> => {
  const { status, body } = await runQuery(query, filters, fields);
  expect([status, body.detail]).toEqual([200, undefined]);
  return (body.results as readonly (readonly unknown[])[]).map(([name]) => String(name)).join('');
};

const all = 'select event from events where {filters} order by timestamp';
const pro = { key: 'plan', value: 'pro' };

describe('{filters}', () => {
  it.each([
    [undefined, 'abcd'],
    [{}, 'abcd'],
    [{ dateRange: { date_from: '2026-11-20' } }, 'cd'],
    [{ dateRange: { date_to: '2026-11-19' } }, 'ab'],
    [{ dateRange: { date_to: '2026-11-20' } }, 'abcd'],
    [{ dateRange: { date_from: '2026-11-20', date_to: '2026-11-20' } }, 'cd'],
    [{ dateRange: { date_to: '2026-11-20', explicitDate: true } }, 'ab'],
    [{ dateRange: { date_from: '2026-11-19T10:02:00Z', date_to: '2026-11-20T12:00:00Z' } }, 'bc'],
    [{ dateRange: { date_from: 'all' } }, 'abcd'],
    [{ dateRange: { date_from: '-1y' } }, 'abcd'],
    [{ dateRange: { date_to: '-9y' } }, ''],
    [{ properties: [pro] }, 'ac'],
    [
      { properties: { type: 'OR', values: [pro, { type: 'event_metadata', key: 'event', value: 'd' }] } },
      'acd',
    ],
    [{ properties: [{ type: 'session', key: '$session_duration', operator: 'gt', value: 60 }] }, 'ab'],
    [{ filterTestAccounts: true }, 'abc'],
    [{ dateRange: { date_from: '2026-11-20' }, properties: [pro], filterTestAccounts: true }, 'c'],
  ])('%j', async (filters, names) => {
    expect(await namesOf(all, filters)).toBe(names);
  });

  it.each([
    // Aliases, other tables and subqueries do not change its meaning.
    ["select 'x' as timestamp, event as properties from events where {filters}", 'xx'],
    [
      'select e.event from events as e join sessions as s on s.session_id = e.$session_id where {filters} order by 1',
      'ac',
    ],
    [
      'with of_two as (select event from events where {filters}) select event from of_two order by event',
      'ac',
    ],
    [
      'select event from events where {filters} and event in (select event from events where {filters}) order by 1',
      'ac',
    ],
    ['select count() from events where {filters} union all select 7 from events where event = {name}', '27'],
  ])('%s', async (query, names) => {
    const { status, body } = await api.call('POST', `/api/projects/${api.projectId}/query/`, {
      query: { kind: 'DialectQuery', query, values: { name: 'b' }, filters: { properties: [pro] } },
    });
    expect([status, body.detail, (body.results as unknown[][]).map(([name]) => name).join('')]).toEqual([
      200,
      undefined,
      names,
    ]);
  });

  it('applies to the start of sessions in queries of sessions', async () => {
    const query = 'select session_id from sessions where {filters} order by session_id';
    expect(await namesOf(query, { dateRange: { date_from: '2026-11-20' } })).toBe('s2s3');
    expect(
      await namesOf(query, {
        properties: [{ type: 'session', key: '$session_duration', operator: 'gt', value: 60 }],
      }),
    ).toBe('s1');
  });

  it('applies to the creation time and properties of groups in queries of groups', async () => {
    const query = 'select concat(key, toString(index)) from groups where {filters} order by 1';
    expect(await namesOf(query)).toBe('g0g1h0');
    expect(await namesOf(query, { dateRange: { date_from: '2026-11-20' } })).toBe('g1h0');
    const seats = { type: 'group', key: 'seats', operator: 'gt', value: 3 };
    const key = { type: 'group', key: '$group_key', operator: 'is_not', value: 'h' };
    const cases: readonly [object[], string][] = [
      [[seats], 'h0'],
      [[{ ...seats, group_type_index: 1 }], 'g1'],
      [[key], 'g0'],
      [[{ ...key, key: '$group_1' }], 'g1'],
      [[seats, key], ''],
    ];
    for (const [properties, names] of cases) expect(await namesOf(query, { properties })).toBe(names);
  });

  it('applies to columns that a query binds; null skips a key', async () => {
    const bound = (bindings: string): string =>
      `select event from (select event, timestamp as at, properties.plan as p from events) where {filters(${bindings})} order by at`;
    const filters = { dateRange: { date_from: '2026-11-20' }, properties: [pro] };
    expect(await namesOf(bound("at AS timestamp, p AS 'plan'"))).toBe('abcd');
    expect(await namesOf(bound("at AS timestamp, p AS 'plan'"), filters)).toBe('c');
    expect(await namesOf(bound("null AS timestamp, p AS 'plan'"), filters)).toBe('ac');
    expect(await namesOf(bound("toTimeZone(at, 'UTC') AS timestamp, null AS plan"), filters)).toBe('cd');
    const groups = {
      type: 'OR',
      values: [pro, { key: 'name', operator: 'icontains', value: 'D' }],
    };
    expect(await namesOf(bound("p AS 'plan', event AS 'name'"), { properties: groups })).toBe('acd');
    expect(await namesOf(bound("p AS 'plan'"), { filterTestAccounts: true })).toBe('abc');
  });

  it('has the interval and the breakdown of a dashboard as placeholders', async () => {
    const byInterval = "select toString({filters.interval('week')}), {filters.interval}";
    expect((await runQuery(byInterval)).body.results).toEqual([['week', 'day']]);
    expect((await runQuery(byInterval, { interval: 'hour' })).body.results).toEqual([['hour', 'hour']]);
    const byPlan =
      "select {filters.breakdown(properties.plan AS 'plan', null AS 'browser')} as b, count() from events group by b order by b";
    const plans = [
      ['free', 1],
      ['pro', 2],
      ['staff', 1],
    ];
    const cases: readonly [object, unknown][] = [
      [{}, [[null, 4]]],
      [{ breakdown: 'plan' }, plans],
      [{ breakdown: ['plan'], breakdown_type: 'event' }, plans],
      [{ breakdowns: [{ property: 'plan', type: 'person' }] }, plans],
      [{ breakdown: 'browser' }, [[null, 4]]],
    ];
    for (const [breakdownFilter, rows] of cases)
      expect((await runQuery(byPlan, { breakdownFilter })).body.results).toEqual(rows);
  });

  it('has its bounds as separate placeholders; a comparison with an unset one is true', async () => {
    const query =
      'select event from events where timestamp >= {filters.dateRange.from} and timestamp < {filters.dateRange.to} order by event';
    expect(await namesOf(query)).toBe('abcd');
    expect(await namesOf(query, { dateRange: { date_from: '2026-11-20' } })).toBe('cd');
    expect(await namesOf(query, { dateRange: { date_from: 'all', date_to: '2026-11-20T00:30:00' } })).toBe(
      'ab',
    );
  });

  it("is narrowed by a dashboard's filters, whose dates replace its own", async () => {
    const own = { dateRange: { date_from: '2026-11-20' }, properties: [pro] };
    const plans = (value: string) => [{ type: 'event', key: 'plan', value }];
    expect(await namesOf(all, own, { filters_override: { date_to: '2026-11-19' } })).toBe('a');
    expect(await namesOf(all, own, { filters_override: { date_to: '2026-11-20' } })).toBe('ac');
    expect(await namesOf(all, own, { filters_override: { properties: plans('free') } })).toBe('');
    expect(
      await namesOf(all, own, { filters_override: { date_from: 'all', properties: plans('pro') } }),
    ).toBe('ac');
  });

  it.each([
    ['select 1 from person_distinct_ids where {filters}', {}, {}, 'dialect_error', 'query__query'],
    [
      'select 1 from persons where {filters}',
      { properties: [pro] },
      {},
      'not_supported',
      'query__filters__properties__0__type',
    ],
    [
      "select 1 from persons where {filters(properties.plan AS 'plan')}",
      { dateRange: { date_from: '2026-11-20' } },
      {},
      'invalid_input',
      'query__filters__dateRange',
    ],
    [
      'select 1 from persons where {filters(null AS timestamp)}',
      { properties: [{ key: '' }, pro] },
      {},
      'invalid_input',
      'query__filters__properties__1',
    ],
    [
      'select 1 from persons where {filters(null AS timestamp)}',
      { properties: [{ type: 'hogql', key: '1 = 1' }] },
      {},
      'not_supported',
      'query__filters__properties__0__type',
    ],
    [
      'select 1 from persons where {filters(null AS timestamp)}',
      { properties: [{ type: 'cohort', key: 'id', value: 5 }] },
      {},
      'not_supported',
      'query__filters__properties__0__type',
    ],
    [
      "select {filters.breakdown(event AS 'e')} from events",
      { breakdownFilter: { breakdown_type: 'cohort', breakdown: [5] } },
      {},
      'not_supported',
      'query__filters__breakdownFilter',
    ],
    [
      'select 1 from persons where {filters(null AS timestamp)}',
      { filterTestAccounts: true },
      {},
      'invalid_input',
      'query__filterTestAccounts',
    ],
    [
      "select {filters.breakdown(event AS 'e')} from events",
      { breakdownFilter: { breakdown: 'plan' } },
      {},
      'invalid_input',
      'query__filters__breakdownFilter',
    ],
    [
      "select {filters.breakdown(event AS 'e')} from events",
      { breakdownFilter: { breakdown: ['e', 'plan'] } },
      {},
      'not_supported',
      'query__filters__breakdownFilter',
    ],
    [
      "select {filters.breakdown(event AS 'e')} from events",
      { breakdownFilter: { breakdown: 'e', breakdown_histogram_bin_count: 3 } },
      {},
      'not_supported',
      'query__filters__breakdownFilter',
    ],
    ["select {filters.interval('fortnight')}", {}, {}, 'dialect_error', 'query__query'],
    ['select {filters.interval}', { interval: 'fortnight' }, {}, 'invalid_input', 'query__filters__interval'],
    [all, { dateRange: { date_from: 'soon' } }, {}, 'invalid_input', 'query__filters__dateRange__date_from'],
    [all, { dateRange: { date_to: 'all' } }, {}, 'invalid_input', 'query__filters__dateRange__date_to'],
    [
      all,
      { properties: [pro, { type: 'cohort', key: 'id', value: 1 }] },
      {},
      'invalid_input',
      'query__filters__properties__1__value',
    ],
    [
      all,
      { properties: [{ key: 'plan', operator: 'likes' }] },
      {},
      'invalid_input',
      'query__filters__properties__0__operator',
    ],
    [all, {}, { filters_override: { date_to: 'soon' } }, 'invalid_input', 'filters_override__date_to'],
    [
      all,
      {},
      { filters_override: { properties: [{ key: 5, operator: 'likes' }] } },
      'invalid_input',
      'filters_override__properties__0__operator',
    ],
    [
      'select 1 from sessions where {filters}',
      { filterTestAccounts: true },
      {},
      'not_supported',
      'query__filters__filterTestAccounts',
    ],
    [
      'select 1 from groups where {filters}',
      { filterTestAccounts: true },
      {},
      'not_supported',
      'query__filters__filterTestAccounts',
    ],
    [
      'select 1 from sessions where {filters}',
      { properties: [pro] },
      {},
      'not_supported',
      'query__filters__properties__0__type',
    ],
  ])('rejects by name: %s with %j and %j', async (query, filters, fields, code, attr) => {
    const { status, body } = await runQuery(query, filters, fields);
    expect([status, body]).toMatchObject([400, { code, attr }]);
  });
});
