import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { openApiHarness, type ApiHarness } from '../http/api_harness.ts';

let api: ApiHarness;
beforeAll(async () => {
  api = await openApiHarness();
  await api.database.pool.query(
    `insert into events (team_id, uuid, event, distinct_id, properties, timestamp)
     values ($1, gen_random_uuid(), 'click', 'u',
       '{"id": 9007199254740993, "list": [18446744073709551615], "price": 0.12345678901234567891, "text": "9007199254740993"}', now())`,
    [api.projectId],
  );
});
afterAll(() => api.close());

const exact =
  '{"id":9007199254740993,"list":[18446744073709551615],"text":"9007199254740993","price":0.12345678901234567891}';
const sorted = (text: string): string => text.split(/[{},]/).toSorted().join();

it.each([
  ['select 9007199254740993, -9223372036854775807', '9007199254740993,-9223372036854775807'],
  ['select [9007199254740993, 1], (9007199254740993, 1)', '[9007199254740993,1],[9007199254740993,1]'],
  [
    'select sum(x), max(x) from (select 9007199254740993 as x union all select 2)',
    '9007199254740995,9007199254740993',
  ],
  ['select properties.id from events', '"9007199254740993"'],
  ["select JSONExtractInt(toString(properties), 'id') from events", '9007199254740993'],
  ['select 1, 0.1 + 0.2, 12345678.5', '1,0.30000000000000004,12345678.5'],
])('the query endpoint returns all digits: %s', async (query, values) => {
  const { status, text, body } = await api.call('POST', 'query', { query: { kind: 'DialectQuery', query } });
  expect([status, body.detail]).toEqual([200, undefined]);
  expect(text).toContain(`"results":[[${values}]]`);
});

it.each([
  { kind: 'DialectQuery', query: 'select properties from events' },
  { kind: 'EventsQuery', select: ['properties'], after: 'all' },
])('properties have all digits: %j', async (query) => {
  const { status, text } = await api.call('POST', 'query', { query });
  expect(status).toBe(200);
  const [, found = ''] = /"results":\[\[(\{.*?\})\]\]/.exec(text) ?? [];
  expect(sorted(found)).toBe(sorted(exact));
});
