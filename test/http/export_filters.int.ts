import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { minuteAgo } from '../setup/minutes.ts';
import { openApiHarness, type ApiHarness } from './api_harness.ts';
import { changeStored } from '../setup/change_stored.ts';
import { casesOf } from '../setup/effort.ts';

// Each filter selects as many rows in an export as it finds in a query.

const values: readonly unknown[] = [
  'Chrome',
  'Chrome Mobile',
  'xChromex',
  'chrome',
  'Firefox',
  '',
  ' ',
  'ÄÖ',
  'äö',
  '😀',
  'a%b',
  'a_b',
  'a\\b',
  '5',
  '5.0',
  '05',
  '1e2',
  '-1',
  'true',
  'false',
  'null',
  'line\nbreak',
  "it's",
  5,
  5.5,
  0,
  -1,
  100,
  1e300,
  true,
  false,
  null,
  [],
  [1, 2],
  ['Chrome'],
  {},
  { a: 1 },
  '2026-11-01',
  '2026-11-01T10:00:00Z',
  '2026-11-01T10:00:00.500Z',
  '2026-11-01 10:00:00',
  '2026-11-01T12:00:00+02:00',
  '2026-10-31T23:59:59',
  '2026-11-02',
  '2026-02-30',
  'soon',
];

const operators: Readonly<Record<string, readonly unknown[]>> = {
  exact: [
    'Chrome',
    '',
    '5',
    5,
    5.5,
    true,
    'true',
    ['Chrome', 5, false],
    ['Firefox', null],
    [],
    'ÄÖ',
    '😀',
    '[1, 2]',
  ],
  is_not: ['Chrome', '5', 5, true, ['Chrome', 5, null], [], "it's"],
  in: [['Chrome', 'Firefox'], [5, '5.0'], 'äö'],
  not_in: [['Chrome', 'Firefox'], [5, '5.0'], []],
  icontains: ['chrome', 'äÖ', '%', '_', 'a_b', 'a\\\\b', 5, true, ['fire', '😀'], ''],
  not_icontains: ['chrome', 5, ['fire', '5'], ''],
  regex: [
    '\\bChrome\\b',
    '^\\d+$',
    '^\\w+$',
    '^\\s*$',
    '(?i)^CHROME',
    'Ä|😀',
    ['^a', '\\.5$'],
    '^.$',
    '[[:digit:]]',
  ],
  not_regex: ['\\bChrome\\b', '\\d', ['^C', '\\W'], ''],
  gt: [5, '5', 'Chrome', ['a', 50], true],
  gte: [5, '5.5', 'Chrome', ''],
  lt: [5, '1e2', 'Chrome', 'ÄÖ'],
  lte: [0, '-1', 'Chrome', ['A', 0]],
  min: [5, 'Chrome'],
  max: [5, 'Chrome'],
  between: [
    [0, 5],
    ['0', '5.5'],
    [5, 0],
  ],
  not_between: [
    [0, 5],
    ['-1', '100'],
  ],
  is_date_exact: ['2026-11-01', '2026-11-01T10:00:00Z', '2026-11-01T10:00:00', ['2026-10-31', '2026-11-02']],
  is_date_before: ['2026-11-01', '2026-11-01T10:00:00.250Z', '2026-11-01T11:00:00+02:00'],
  is_date_after: ['2026-11-01', '2026-11-01T10:00:00.250Z', '2026-10-31T23:00:00'],
  is_set: [undefined],
  is_not_set: [undefined],
};

/** Conditions on properties of events or of persons. */
const filtersOn = (type: 'event' | 'person'): readonly object[] =>
  Object.entries(operators).flatMap(([operator, given]) =>
    given.map((value) => ({ type, key: 'value', operator, ...(value !== undefined && { value }) })),
  );
const otherFilters: readonly object[] = [
  { type: 'event', key: `it's "a".b`, operator: 'is_set' },
  { type: 'event', key: 'nowhere', operator: 'is_not', value: 'a' },
  { type: 'event_metadata', key: 'event', operator: 'icontains', value: 'OUGH' },
  { type: 'event_metadata', key: 'distinct_id', operator: 'regex', value: '\\D7$' },
  { type: 'event_metadata', key: 'person_id', operator: 'is_set' },
  { type: 'event_metadata', key: 'timestamp', operator: 'gt', value: '2026-11-01T00:00:20Z' },
  { type: 'hogql', key: "properties.value =~ '\\\\bChrome\\\\b' or event = 'left'" },
  { type: 'dialect', key: 'toFloat(properties.value) > 4 and person.properties.value is not null' },
  { type: 'hogql', key: 'person.id is null' },
  { type: 'hogql', key: "person.created_at < toDateTime('2026-01-02T00:00:00Z')" },
];

const eventFilters = [...filtersOn('event'), ...filtersOn('person'), ...otherFilters];

const range = { start_at: minuteAgo(4), end_at: minuteAgo(2) };

let api: ApiHarness;
let exports: Readonly<Record<'plain' | 'queried' | 'persons', string>>;
beforeAll(async () => {
  api = await openApiHarness({ EXPORTD_QUERIES_PER_HOUR: '100000' });
  // A third of the events name a person but do not store its properties, a third store them, a third have no person. The
  // last person was merged into another one.
  await api.database.pool.query(
    `with given as (
       select n::int, n % 3 as kind, value, $2::timestamptz + interval '1 second' as moment
       from jsonb_array_elements($3::jsonb) with ordinality as given (value, n)
     ), inserted as (
       insert into persons (team_id, id, properties, created_at, updated_at)
       select $1, ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid, jsonb_build_object('value', value),
         timestamptz '2026-01-01Z' + n * interval '1 hour', moment
       from given where kind <> 2
     ), mapped as (
       insert into person_distinct_ids (team_id, distinct_id, person_id, updated_at)
       select $1, 'd' || n, ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid, moment from given where kind <> 2
     )
     insert into events (team_id, uuid, event, distinct_id, person_id, properties, person_properties, timestamp, inserted_at)
     select $1, gen_random_uuid(), case when n % 4 = 0 then 'left' else 'bought' end, 'd' || n,
       case when kind <> 2 then ('00000000-0000-4000-8000-' || lpad(greatest(n - 3, 1)::text, 12, '0'))::uuid end,
       case when n % 7 = 0 then '{}' when n % 11 = 0 then jsonb_build_object($4::text, value)
         else jsonb_build_object('value', value) end,
       case when kind = 1 then jsonb_build_object('value', value) end,
       timestamptz '2026-11-01Z' + n * interval '1 second', moment
     from given`,
    [api.projectId, range.start_at, JSON.stringify(values), `it's "a".b`],
  );
  const create = (more: object) => api.createExport({ paused: true, ...more });
  exports = {
    plain: await create({}),
    queried: await create({
      dialect_query: "select uuid, person.properties.value as value from events where event != 'nothing'",
    }),
    persons: await create({ model: 'persons' }),
  };
});
afterAll(() => api.close());

/** Saves filters as users do, as many at a time as an export may have. */
async function saveFilters(id: string, filters: readonly object[]): Promise<void> {
  for (let at = 0; at < filters.length; at += 20) {
    const config = { filters: filters.slice(at, at + 20) };
    const { status, text } = await api.call('PATCH', `batch_exports/${id}`, { destination: { config } });
    expect([status, status === 200 ? '' : text]).toEqual([200, '']);
  }
}

const storeFilters = (id: string, filters: readonly object[]) =>
  changeStored(
    api.database.pool,
    `update exportd.destination_configs set config = jsonb_set(config::jsonb, '{filters}', $2::jsonb) where batch_export_id = $1`,
    [id, JSON.stringify(filters)],
  );

async function countExported(id: string, filters: readonly object[]): Promise<unknown> {
  await storeFilters(id, filters);
  const counted = await api.call('POST', `batch_exports/${id}/backfills/`, { ...range, dry_run: true });
  return counted.body.rows ?? counted.text;
}

async function countQueried(query: object): Promise<unknown> {
  const { body, text } = await api.call('POST', 'query/', { query, refresh: 'force_blocking' });
  return Array.isArray(body.results) ? body.results.length : text;
}
const countEvents = (properties: readonly object[]) =>
  countQueried({
    kind: 'EventsQuery',
    select: ['uuid'],
    after: '2026-10-01',
    before: '2026-12-01',
    properties,
    limit: 1000,
  });
/** What queries found, by filter: two exports have the same ones. */
const found = new Map<object, unknown>();
const countPersons = (properties: readonly object[]) =>
  countQueried({
    kind: 'ActorsQuery',
    select: ['id'],
    properties,
    limit: 1000,
  });

describe('a filter selects what it finds in a query', () => {
  it('with a regular expression in the syntax of the dialect', async () => {
    const filters = [{ type: 'event', key: 'value', operator: 'regex', value: '\\bChrome\\b' }];
    expect([await countExported(exports.plain, filters), await countEvents(filters)]).toEqual([2, 2]);
  });

  it('where an event does not store the properties of its person', async () => {
    const filters = [{ type: 'person', key: 'value', operator: 'exact', value: 'xChromex' }];
    expect([await countExported(exports.plain, filters), await countEvents(filters)]).toEqual([1, 1]);
  });

  /** A query of the export wraps what its filters select, which does not depend on their values. */
  const somethingOfEach = casesOf(
    eventFilters.filter((_, index) => index % 6 === 0),
    eventFilters,
  );

  it.each([
    ['plain', eventFilters],
    ['queried', somethingOfEach],
  ] as const)('in exports of events: %s', async (kind, filters) => {
    await saveFilters(exports[kind], filters);
    const [exported, queried]: [unknown[], unknown[]] = [[], []];
    for (const filter of filters) {
      exported.push([filter, await countExported(exports[kind], [filter])]);
      if (!found.has(filter)) found.set(filter, await countEvents([filter]));
      queried.push([filter, found.get(filter)]);
    }
    expect(exported).toEqual(queried);
  });

  it('in exports of persons', async () => {
    const [exported, queried]: [unknown[], unknown[]] = [[], []];
    const filters = [...filtersOn('person'), { type: 'hogql', key: "properties.value in ('5', '5.0')" }];
    await saveFilters(exports.persons, filters);
    for (const filter of filters) {
      exported.push([filter, await countExported(exports.persons, [filter])]);
      queried.push([filter, await countPersons([filter])]);
    }
    expect(exported).toEqual(queried);
  });
});

describe('a filter that cannot be compiled is rejected when it is saved, with the path of its field', () => {
  const event = { type: 'event', key: 'a' };
  it.each([
    [{ ...event, operator: 'regex', value: ['a', '('] }, 'value__1', /regular expression/],
    [{ ...event, operator: 'not_regex', value: 'a(?=b)' }, 'value', /not supported/],
    [{ ...event, operator: 'exact', value: null }, 'value', /is_not_set/],
    [{ ...event, operator: 'between', value: [1, 'b'] }, 'value', /two numbers/],
    [{ ...event, operator: 'is_date_before', value: 'soon' }, 'value', /valid date/],
    [{ ...event, operator: 'is_date_before', value: '-7d' }, 'value', /same rows/],
    [{ ...event, operator: 'is_cleaned_path_exact', value: '/a' }, 'operator', /regex/],
    [{ type: 'event_metadata', key: 'team_id', value: 1 }, 'key', /no such field/],
    [{ type: 'hogql', key: 'event = ' }, 'key', /line 1/],
    [{ type: 'hogql', key: 'nothing = 1' }, 'key', /nothing/],
    [{ type: 'hogql', key: 'timestamp < now()' }, 'key', /same rows/],
    [{ type: 'hogql', key: 'count() > 1' }, 'key', /Aggregation/],
    [{ type: 'hogql', key: 'event in (select event from events)' }, 'key', /subquery/],
    [{ type: 'hogql', key: "session.id = 'a'" }, 'key', /session/],
    [{ type: 'cohort', key: 'id', value: 1 }, 'type', /one of: event, person/],
  ])('%j', async (filter, field, detail) => {
    const filters = [{ type: 'event', key: 'b', operator: 'is_set' }, filter];
    const config = { filters };
    const attr = `destination__config__filters__1__${field}`;
    const rejected = { status: 400, body: { attr, detail: expect.stringMatching(detail) } };
    const [saved, previewed] = [
      await api.call('PATCH', `batch_exports/${exports.plain}`, { destination: { config } }),
      await api.call('POST', `batch_exports/${exports.plain}/preview/`, { destination: { config } }),
    ];
    expect([saved, previewed]).toMatchObject([rejected, rejected]);
  });

  it('for the model of the export', async () => {
    const saved = await api.call('PATCH', `batch_exports/${exports.persons}`, {
      destination: { config: { filters: [{ ...event, value: 1 }] } },
    });
    expect([saved.status, saved.body.attr]).toEqual([400, 'destination__config__filters__0__type']);
  });
});

it('names a stored filter that an older version accepted, in a dry run', async () => {
  const id = await api.createExport({ paused: true });
  await storeFilters(id, [{ type: 'event', key: 'a', operator: 'regex', value: '[[:<:]]a' }]);
  const counted = await api.call('POST', `batch_exports/${id}/backfills/`, { ...range, dry_run: true });
  expect([counted.status, counted.body.detail]).toEqual([400, expect.stringContaining("'filters.0.value'")]);
});
