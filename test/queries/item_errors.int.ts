import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { openApiHarness, type ApiHarness } from '../http/api_harness.ts';

let api: ApiHarness;
beforeAll(async () => {
  api = await openApiHarness({ EXPORTD_QUERIES_PER_HOUR: '100000' });
  await api.database.pool.query('drop table public.groups');
});
afterAll(() => api.close());

const runQuery = async (query: object, more: object = {}) => {
  const response = await api.call('POST', 'query/', { query, ...more });
  return { status: response.status, attr: response.body.attr };
};

const fine = { type: 'event', key: 'plan', value: 'pro' };
const unknownField = { type: 'hogql', key: 'nothing = 1' };
const unread = { type: 'hogql', key: 'nothing = ' };
const overMany = { type: 'hogql', key: 'count() > 1' };
const unknownOfSession = { type: 'session', key: 'nothing', value: 1 };
const notStored = { type: 'group', key: 'plan', value: 'pro' };
const unknownType = { type: 'magic', key: 'plan' };
const wrongPattern = { type: 'event', key: 'plan', operator: 'regex', value: ['a', '('] };
const inGroup = (filter: object) => ({ type: 'AND', values: [fine, { type: 'OR', values: [fine, filter] }] });

/** Invalid filters, and the path of the error relative to the filter. */
const faultyFilters: readonly (readonly [string, object, string])[] = [
  ['an unknown field', unknownField, '__key'],
  ['a text that cannot be read', unread, '__key'],
  ['an aggregate', overMany, '__key'],
  ['an unknown field of a session', unknownOfSession, ''],
  ['a property of groups, which the source lacks', notStored, ''],
  ['an unknown type', unknownType, '__type'],
  ['a pattern that is none', wrongPattern, '__value__1'],
  ['a value that is none', { ...fine, value: ['pro', {}] }, '__value__1'],
  ['an unknown field', { ...fine, negated: true }, '__negated'],
];

const node = { kind: 'EventsNode', event: 'bought' };
const trends = (more: object) => ({ kind: 'TrendsQuery', series: [node], ...more });
const funnel = (more: object) => ({
  kind: 'FunnelsQuery',
  series: [node, { ...node, event: 'paid' }],
  ...more,
});
const uniqueGroups = { math: 'unique_group', math_group_type_index: 0 };
const exclusion = { ...node, event: 'left', funnelFromStep: 0, funnelToStep: 1 };
const actorsOf = (kind: string, source: object, point: object) => ({
  kind: 'ActorsQuery',
  source: { kind, source, ...point },
});

/** Queries with filters in one position, and the path of that position. */
const filterPositions: readonly (readonly [string, (properties: unknown) => object, string])[] = [
  ['events', (properties) => ({ kind: 'EventsQuery', select: ['event'], properties }), 'query__properties'],
  [
    'events, fixed',
    (fixedProperties) => ({ kind: 'EventsQuery', select: ['event'], fixedProperties }),
    'query__fixedProperties',
  ],
  ['trends', (properties) => trends({ properties }), 'query__properties'],
  [
    'a series of trends',
    (properties) => trends({ series: [node, { ...node, properties }] }),
    'query__series__1__properties',
  ],
  [
    'a series of trends, fixed',
    (fixedProperties) => trends({ series: [node, { ...node, fixedProperties }] }),
    'query__series__1__fixedProperties',
  ],
  ['a funnel', (properties) => funnel({ properties }), 'query__properties'],
  [
    'a step',
    (properties) => funnel({ series: [node, { ...node, event: 'paid', properties }] }),
    'query__series__1__properties',
  ],
  [
    'an exclusion',
    (properties) => funnel({ funnelsFilter: { exclusions: [exclusion, { ...exclusion, properties }] } }),
    'query__funnelsFilter__exclusions__1__properties',
  ],
  [
    'a query of the dialect',
    (properties) => ({
      kind: 'DialectQuery',
      query: 'select count() from events as e where {filters}',
      filters: { properties },
    }),
    'query__filters__properties',
  ],
  [
    'actors of trends',
    (properties) => actorsOf('InsightActorsQuery', trends({ properties }), { day: '2026-11-20' }),
    'query__source__source__properties',
  ],
  [
    'actors of a funnel',
    (properties) => actorsOf('FunnelsActorsQuery', funnel({ properties }), { funnelStep: 1 }),
    'query__source__source__properties',
  ],
  [
    'events of a point of trends',
    (properties) => ({
      kind: 'EventsQuery',
      select: ['event'],
      source: { kind: 'InsightActorsQuery', source: trends({ properties }), day: '2026-11-20' },
    }),
    'query__source__source__properties',
  ],
  [
    'actors of a query of the dialect',
    (properties) => ({
      kind: 'ActorsQuery',
      source: {
        kind: 'DialectQuery',
        query: 'select person_id from events where {filters}',
        filters: { properties },
      },
    }),
    'query__source__filters__properties',
  ],
];

const long = 'x'.repeat(10_001);
const nested = (levels: number) =>
  Array.from({ length: levels }).reduce<object>((inner) => ({ type: 'AND', values: [inner] }), fine);

it('a value that is too long and groups that are too deep are rejected with a message', async () => {
  const detailOf = async (query: object) => {
    const { body } = await api.call('POST', 'query/', { query });
    return [body.attr, body.detail];
  };
  expect(
    await detailOf(trends({ properties: [fine, { ...fine, operator: 'icontains', value: long }] })),
  ).toEqual(['query__properties__1__value', 'This must have at most 10,000 characters.']);
  expect(
    await detailOf({ kind: 'EventsQuery', select: ['event'], properties: [{ ...fine, value: ['a', long] }] }),
  ).toEqual(['query__properties__0__value__1', 'This must have at most 10,000 characters.']);
  expect(await detailOf({ kind: 'ActorsQuery', search: long })).toEqual([
    'query__search',
    'This must have at most 10,000 characters.',
  ]);
  expect(await detailOf(funnel({ properties: nested(9) }))).toEqual([
    `query__properties${'__values__0'.repeat(8)}`,
    'Groups of property filters can be nested at most 8 levels deep.',
  ]);
  expect((await runQuery(funnel({ properties: nested(8) }))).status).toBe(200);
});

it.each([
  [trends({ filterTestAccounts: true }), 'query__filterTestAccounts'],
  [funnel({ filterTestAccounts: true }), 'query__filterTestAccounts'],
  [{ kind: 'EventsQuery', select: ['event'], filterTestAccounts: true }, 'query__filterTestAccounts'],
  [
    {
      kind: 'DialectQuery',
      query: 'select count() from events where {filters}',
      filters: { filterTestAccounts: true },
    },
    'query__filters__filterTestAccounts',
  ],
])('invalid test account filters of the project are named: %j', async (query, attr) => {
  const setTo = (filters: object) =>
    api.database.pool.query('update exportd.projects set test_account_filters = $1', [
      JSON.stringify(filters),
    ]);
  await setTo([unknownField]);
  expect(await runQuery(query)).toEqual({ status: 400, attr });
  await setTo([]);
});

it('an invalid dashboard filter is named', async () => {
  const more = { filters_override: { properties: [fine, wrongPattern] } };
  expect(await runQuery(trends({}), more)).toEqual({
    status: 400,
    attr: 'filters_override__properties__1__value__1',
  });
});

describe.each(filterPositions)('a filter of %s', (_name, query, path) => {
  it.each(faultyFilters)('with %s is named', async (_fault, filter, below) => {
    expect(await runQuery(query([fine, filter]))).toEqual({ status: 400, attr: `${path}__1${below}` });
    expect(await runQuery(query(inGroup(filter)))).toEqual({
      status: 400,
      attr: `${path}__values__1__values__1${below}`,
    });
  });
});

const useGroup = { type: 'person', key: 'plan', value: 'pro' };

it.each([
  ['an unknown field', unknownField, '__key'],
  ['an aggregate', overMany, '__key'],
  ['a filter of events', fine, '__type'],
])('a filter of persons with %s is named', async (_fault, filter, below) => {
  const properties = [useGroup, filter];
  expect(await runQuery({ kind: 'ActorsQuery', properties })).toEqual({
    status: 400,
    attr: `query__properties__1${below}`,
  });
});

it.each([
  [{ kind: 'EventsQuery', select: ['event', 'nothing'] }, 'query__select__1'],
  [{ kind: 'EventsQuery', select: ['event', 3] }, 'query__select__1'],
  [{ kind: 'EventsQuery', select: ['event', 'event +'] }, 'query__select__1'],
  [{ kind: 'EventsQuery', select: ['upper(event) as name', 'upper(name)', 'nothing'] }, 'query__select__2'],
  [{ kind: 'EventsQuery', select: ['count()', 'event', 'lower(nothing)'] }, 'query__select__2'],
  [{ kind: 'EventsQuery', select: ['event'], where: ['1 = 1', 'nothing = 1'] }, 'query__where__1'],
  [{ kind: 'EventsQuery', select: ['event'], where: ['1 = 1', 'sum(nothing) > 1'] }, 'query__where__1'],
  [
    { kind: 'EventsQuery', select: ['upper(event) as name'], where: ["name = 'A'", 'nothing = 1'] },
    'query__where__1',
  ],
  [{ kind: 'EventsQuery', select: ['event'], orderBy: ['event', 'nothing'] }, 'query__orderBy__1'],
  [{ kind: 'EventsQuery', select: ['event'], orderBy: ['event', 'event desc asc'] }, 'query__orderBy__1'],
  [{ kind: 'EventsQuery', select: ['event'], orderBy: ['event', 'count()'] }, 'query__orderBy__1'],
  [{ kind: 'EventsQuery', select: ['event'], orderBy: ['event', '7'] }, 'query__orderBy__1'],
  [
    { kind: 'EventsQuery', select: ['event', 'count()'], orderBy: ['count()', 'distinct_id'] },
    'query__orderBy__1',
  ],
  [{ kind: 'ActorsQuery', select: ['person', 'nothing'] }, 'query__select__1'],
  [{ kind: 'ActorsQuery', select: ['person', 'id +'] }, 'query__select__1'],
  [
    { kind: 'ActorsQuery', select: ['upper(toString(id)) as name', 'upper(name)', 'nothing'] },
    'query__select__2',
  ],
  [{ kind: 'ActorsQuery', orderBy: ['id', 'nothing'] }, 'query__orderBy__1'],
  [{ kind: 'ActorsQuery', orderBy: ['id', 'id desc asc'] }, 'query__orderBy__1'],
  [{ kind: 'ActorsQuery', select: ['id'], orderBy: ['id', 'count()'] }, 'query__orderBy__1'],
  [
    trends({ breakdownFilter: { breakdowns: [{ property: 'a' }, { type: 'hogql', property: 'nothing' }] } }),
    'query__breakdownFilter__breakdowns__1',
  ],
  [
    trends({
      breakdownFilter: { breakdowns: [{ property: 'a' }, { type: 'session', property: 'nothing' }] },
    }),
    'query__breakdownFilter__breakdowns__1',
  ],
  [
    trends({ breakdownFilter: { breakdowns: [{ property: 'a' }, { type: 'group', property: 'plan' }] } }),
    'query__breakdownFilter__breakdowns__1',
  ],
  [trends({ breakdownFilter: { breakdown: ['a', {}] } }), 'query__breakdownFilter__breakdown__1'],
  [
    trends({ series: [node, { ...node, math: 'hogql', math_hogql: 'sum(nothing)' }] }),
    'query__series__1__math_hogql',
  ],
  [trends({ series: [node, { kind: 'Nothing' }] }), 'query__series__1__kind'],
  [trends({ series: [node, { ...node, math: 'most' }] }), 'query__series__1__math'],
  [trends({ trendsFilter: { formulas: ['A', 'A +'] } }), 'query__trendsFilter__formulas__1'],
  [
    trends({ trendsFilter: { formulaNodes: [{ formula: 'A' }, { formula: 'B' }] } }),
    'query__trendsFilter__formulaNodes__1__formula',
  ],
  [
    funnel({ breakdownFilter: { breakdowns: [{ property: 'a' }, { type: 'hogql', property: 'nothing' }] } }),
    'query__breakdownFilter__breakdowns__1',
  ],
  [
    funnel({ breakdownFilter: { breakdown_type: 'hogql', breakdown: ['event', 'nothing'] } }),
    'query__breakdownFilter__breakdown__1',
  ],
  [
    funnel({ breakdownFilter: { breakdown_type: 'group', breakdown: 'plan' } }),
    'query__breakdownFilter__breakdown',
  ],
  [
    actorsOf(
      'InsightActorsQuery',
      trends({
        series: [node, { ...node, ...uniqueGroups }],
        dateRange: { date_from: '2026-11-18', date_to: '2026-11-21' },
      }),
      { day: '2026-11-20', series: 1 },
    ),
    'query__source__source__series__1__math',
  ],
  [
    actorsOf('FunnelsActorsQuery', funnel({ aggregation_group_type_index: 0 }), { funnelStep: 1 }),
    'query__source__source__aggregation_group_type_index',
  ],
  [
    {
      kind: 'ActorsQuery',
      source: { kind: 'DialectQuery', query: 'select $group_0 as group_key from events' },
    },
    'query__source__query',
  ],
  [funnel({ series: [node, { ...node, math: 'sum' }] }), 'query__series__1__math'],
  [
    funnel({ funnelsFilter: { exclusions: [exclusion, { ...exclusion, funnelToStep: 7 }] } }),
    'query__funnelsFilter__exclusions__1',
  ],
  [
    funnel({ funnelsFilter: { funnelAggregateByHogQL: 'nothing' } }),
    'query__funnelsFilter__funnelAggregateByHogQL',
  ],
])('%j', async (query, attr) => {
  expect(await runQuery(query)).toEqual({ status: 400, attr });
});
