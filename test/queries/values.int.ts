import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { openApiHarness, type ApiHarness } from '../http/api_harness.ts';

let api: ApiHarness;
// Two sessions, of which the first takes 2360.747 s, and an event of none.
beforeAll(async () => {
  api = await openApiHarness();
  await api.database.pool.query(
    `insert into public.events (team_id, uuid, event, distinct_id, properties, timestamp)
     select $1, gen_random_uuid(), name, 'd', properties::jsonb, at::timestamptz
     from (values ('view', '{"$session_id": "a", "$group_0": "acme", "tags": ["p", {"q": "r: s, t"}]}', '2026-11-20T00:45:00Z'),
                  ('view', '{"$session_id": "a", "utm": "x", "tags": "[\\"p\\", 1]"}', '2026-11-20T01:24:20.747Z'),
                  ('view', '{"$session_id": "b", "$group_0": "acme", "tags": []}', '2026-11-20T02:00:00Z'),
                  ('view', '{}', '2026-11-20T03:00:00Z')) as rows (name, properties, at)`,
    [api.projectId],
  );
});
afterAll(() => api.close());

const post = (query: object) => api.call('POST', `/api/projects/${api.projectId}/query/`, { query });
const runSql = (query: string) => post({ kind: 'DialectQuery', query });
const rowsOf = async (query: string): Promise<unknown> => {
  const { status, body } = await runSql(query);
  expect([status, body.detail]).toEqual([200, undefined]);
  return body.results;
};
const trend = async (fields: object): Promise<unknown> => {
  const { status, body } = await post({
    kind: 'TrendsQuery',
    series: [{ kind: 'EventsNode', event: 'view' }],
    dateRange: { date_from: '2026-11-20', date_to: '2026-11-20' },
    ...fields,
  });
  expect([status, body.detail]).toEqual([200, undefined]);
  return (body.results as { breakdown_value?: unknown; count: number }[]).map((one) => [
    one.breakdown_value,
    one.count,
  ]);
};
const filter = (type: string, key: string, operator: string, value?: unknown) => ({
  properties: [{ type, key, operator, value }],
});

describe('the values of queries', () => {
  it.each<[string, unknown]>([
    [
      "select properties.utm || ' (' || $group_0 || ')' as label, count() from events group by label order by label",
      [
        [' ()', 1],
        [' (acme)', 2],
        ['x ()', 1],
      ],
    ],
    [
      "select countIf($group_0 != ''), countIf(empty($session_id)), uniq($session_id), countIf($window_id = '') from events",
      [[2, 1, 3, 4]],
    ],
    ['select $session_duration from sessions order by session_id', [[2360], [0]]],
    ['select session.$session_duration from events order by timestamp', [[2360], [2360], [0], [null]]],
    ['select count() from events where session.$session_duration >= 2361', [[0]]],
    [
      'select properties.tags from events order by timestamp',
      [['["p",{"q":"r: s, t"}]'], ['["p", 1]'], ['[]'], [null]],
    ],
    [`select count() from events where properties.tags = '["p",{"q":"r: s, t"}]'`, [[1]]],
    [`select count() from events where properties.tags in ('["p",{"q":"r: s, t"}]', '[]')`, [[2]]],
    [`select count() from events where properties.tags like '%"p",{"q"%'`, [[1]]],
    ["select count() from events where properties.tags ilike '%s, T%'", [[1]]],
    [
      'select properties.tags as tags, count() from events group by tags having tags =~ \'","\' order by 1',
      [],
    ],
    [
      "select toString(properties) from events where $group_0 = 'acme' and $session_id = 'b'",
      [['{"tags":[],"$group_0":"acme","$session_id":"b"}']],
    ],
  ])('%s', async (query, rows) => {
    expect(await rowsOf(query)).toEqual(rows);
  });

  it('are the same in insights', async () => {
    const duration = (operator: string, value: number) =>
      filter('session', '$session_duration', operator, value);
    expect(await trend(duration('gt', 2359))).toEqual([[undefined, 2]]);
    expect(await trend(duration('gt', 2360))).toEqual([[undefined, 0]]);
    const breakdown = (property: string, type: string) => ({
      breakdownFilter: { breakdown: property, breakdown_type: type },
    });
    expect(await trend(breakdown('$session_duration', 'session'))).toEqual([
      ['2360', 2],
      ['0', 1],
      ['$$_posthog_breakdown_null_$$', 1],
    ]);
    expect(await trend(breakdown('$group_0', 'event_metadata'))).toEqual([
      ['acme', 2],
      ['$$_posthog_breakdown_null_$$', 2],
    ]);
    expect(await trend(breakdown('tags', 'event'))).toEqual([
      ['["p", 1]', 1],
      ['["p",{"q":"r: s, t"}]', 1],
      ['[]', 1],
      ['$$_posthog_breakdown_null_$$', 1],
    ]);
    expect(await trend({ series: [{ kind: 'EventsNode', event: 'view', math: 'unique_session' }] })).toEqual([
      [undefined, 3],
    ]);
  });

  it.each([
    ['$group_0', 'exact', 'acme', 2],
    ['$group_0', 'is_not', 'acme', 2],
    ['$group_0', 'is_set', undefined, 2],
    ['$group_0', 'is_not_set', undefined, 2],
    ['$group_0', 'exact', '', 2],
    ['$session_id', 'exact', ['a', 'b'], 3],
    ['$session_id', 'not_icontains', 'a', 2],
  ])('are filtered by columns that are properties here: %s %s %j', async (key, operator, value, count) => {
    expect(await trend(filter('event_metadata', key, operator, value))).toEqual([[undefined, count]]);
  });
});

describe('a set operation without LIMIT', () => {
  const numbers = (count: number, from = 0): string => `select number + ${from} from numbers(${count})`;

  it.each([
    [`${numbers(101)} union all ${numbers(5)}`, 105],
    [`${numbers(5)} union all ${numbers(101)}`, 105],
    [`${numbers(300)} except ${numbers(250)}`, 0],
    [`${numbers(101)} intersect ${numbers(101)}`, 100],
    [`with a as (${numbers(200)}) select * from a union all select 1 from a`, 200],
  ])('says that a query of it was cut: %s', async (query, count) => {
    const { body } = await runSql(query);
    expect([(body.results as unknown[]).length, body.hasMore, body.notice]).toEqual([
      count,
      true,
      expect.stringMatching(/has more than 100 rows.*Give it a LIMIT/),
    ]);
  });

  it.each([
    [`${numbers(100)} union all ${numbers(100)}`, 200],
    [`${numbers(300)} limit 150 union all ${numbers(5)}`, 155],
    [`${numbers(100)} except ${numbers(50)}`, 50],
    [`${numbers(3)} union distinct ${numbers(4)}`, 4],
  ])('says nothing if no query was cut: %s', async (query, count) => {
    const { body } = await runSql(query);
    expect([(body.results as unknown[]).length, body.hasMore, body.notice]).toEqual([count, false, null]);
  });
});

describe('an error says where it is', () => {
  it.each([
    ['select (select 1) + 9223372036854775807', 21, 'out of range'],
    ['select now() - INTERVAL 99999999999999999999 DAY', 25, 'at most 2147483647'],
    ['', 1, 'The query is empty'],
  ])('%s', async (query, column, message) => {
    const { status, body } = await runSql(query);
    expect([status, body.attr]).toEqual([400, 'query__query']);
    expect(body.detail).toMatch(message);
    expect(body.detail).toMatch(`(line 1, column ${column})`);
  });

  it.each([
    ['select 1,\n  \u0000', /Null characters .*\(line 2, column 3\)/],
    ["select 'ä\ud800'", /surrogates .*\(line 1, column 10\)/],
  ])('%j', async (query, detail) => {
    const { status, body } = await runSql(query);
    expect([status, body.attr, body.detail]).toEqual([400, 'query__query', expect.stringMatching(detail)]);
  });
});
