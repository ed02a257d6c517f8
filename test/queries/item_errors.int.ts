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

const validFilter = { type: 'event', key: 'plan', value: 'pro' };
const unknownField = { type: 'hogql', key: 'nothing = 1' };
const syntaxError = { type: 'hogql', key: 'nothing = ' };
const aggregate = { type: 'hogql', key: 'count() > 1' };
const unknownSessionField = { type: 'session', key: 'nothing', value: 1 };
const groupProperty = { type: 'group', key: 'plan', value: 'pro' };
const unknownCohort = { type: 'cohort', key: 'id', value: 77 };
const unknownType = { type: 'magic', key: 'plan' };
const invalidPattern = { type: 'event', key: 'plan', operator: 'regex', value: ['a', '('] };
const inGroup = (filter: object) => ({
  type: 'AND',
  values: [validFilter, { type: 'OR', values: [validFilter, filter] }],
});

/** Invalid filters, and the path of the error relative to the filter. */
const faultyFilters: readonly (readonly [string, object, string])[] = [
  ['an unknown field', unknownField, '__key'],
  ['an expression with a syntax error', syntaxError, '__key'],
  ['an aggregate', aggregate, '__key'],
  ['an unknown field of a session', unknownSessionField, ''],
  ['a property of groups, which the source lacks', groupProperty, ''],
  ['an unknown type', unknownType, '__type'],
  ['an invalid pattern', invalidPattern, '__value__1'],
  ['an invalid value', { ...validFilter, value: ['pro', {}] }, '__value__1'],
  ['an unknown field', { ...validFilter, negated: true }, '__negated'],
  ['a cohort without persons', unknownCohort, '__value'],
  ['an expression on a cohort without persons', { type: 'hogql', key: 'person_id in cohort 77' }, '__key'],
];

const node = { kind: 'EventsNode', event: 'bought' };
const trendsQuery = (more: object) => ({ kind: 'TrendsQuery', series: [node], ...more });
const funnelsQuery = (more: object) => ({
  kind: 'FunnelsQuery',
  series: [node, { ...node, event: 'paid' }],
  ...more,
});
const uniqueGroups = { math: 'unique_group', math_group_type_index: 0 };
const exclusion = { ...node, event: 'left', funnelFromStep: 0, funnelToStep: 1 };
const actorsQuery = (kind: string, source: object, point: object) => ({
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
  ['trends', (properties) => trendsQuery({ properties }), 'query__properties'],
  [
    'a series of trends',
    (properties) => trendsQuery({ series: [node, { ...node, properties }] }),
    'query__series__1__properties',
  ],
  [
    'a series of trends, fixed',
    (fixedProperties) => trendsQuery({ series: [node, { ...node, fixedProperties }] }),
    'query__series__1__fixedProperties',
  ],
  ['a funnel', (properties) => funnelsQuery({ properties }), 'query__properties'],
  [
    'a step',
    (properties) => funnelsQuery({ series: [node, { ...node, event: 'paid', properties }] }),
    'query__series__1__properties',
  ],
  [
    'an exclusion',
    (properties) =>
      funnelsQuery({ funnelsFilter: { exclusions: [exclusion, { ...exclusion, properties }] } }),
    'query__funnelsFilter__exclusions__1__properties',
  ],
  [
    'a dialect query',
    (properties) => ({
      kind: 'DialectQuery',
      query: 'select count() from events as e where {filters}',
      filters: { properties },
    }),
    'query__filters__properties',
  ],
  [
    'actors of trends',
    (properties) => actorsQuery('InsightActorsQuery', trendsQuery({ properties }), { day: '2026-11-20' }),
    'query__source__source__properties',
  ],
  [
    'actors of a funnel',
    (properties) => actorsQuery('FunnelsActorsQuery', funnelsQuery({ properties }), { funnelStep: 1 }),
    'query__source__source__properties',
  ],
  [
    'events of a point of a trend',
    (properties) => ({
      kind: 'EventsQuery',
      select: ['event'],
      source: { kind: 'InsightActorsQuery', source: trendsQuery({ properties }), day: '2026-11-20' },
    }),
    'query__source__source__properties',
  ],
  [
    'actors of a dialect query',
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
  Array.from({ length: levels }).reduce<object>((inner) => ({ type: 'AND', values: [inner] }), validFilter);

it('a value that is too long and groups that are too deep are rejected with a message', async () => {
  const detailOf = async (query: object) => {
    const { body } = await api.call('POST', 'query/', { query });
    return [body.attr, body.detail];
  };
  expect(
    await detailOf(
      trendsQuery({ properties: [validFilter, { ...validFilter, operator: 'icontains', value: long }] }),
    ),
  ).toEqual(['query__properties__1__value', 'This must have at most 10,000 characters.']);
  expect(
    await detailOf({
      kind: 'EventsQuery',
      select: ['event'],
      properties: [{ ...validFilter, value: ['a', long] }],
    }),
  ).toEqual(['query__properties__0__value__1', 'This must have at most 10,000 characters.']);
  expect(await detailOf({ kind: 'ActorsQuery', search: long })).toEqual([
    'query__search',
    'This must have at most 10,000 characters.',
  ]);
  expect(await detailOf(funnelsQuery({ properties: nested(9) }))).toEqual([
    `query__properties${'__values__0'.repeat(8)}`,
    'Groups of property filters can be nested at most 8 levels deep.',
  ]);
  expect((await runQuery(funnelsQuery({ properties: nested(8) }))).status).toBe(200);
});

it.each([
  [trendsQuery({ filterTestAccounts: true }), 'query__filterTestAccounts'],
  [funnelsQuery({ filterTestAccounts: true }), 'query__filterTestAccounts'],
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
  const more = { filters_override: { properties: [validFilter, invalidPattern] } };
  expect(await runQuery(trendsQuery({}), more)).toEqual({
    status: 400,
    attr: 'filters_override__properties__1__value__1',
  });
});

describe.each(filterPositions)('a filter of %s', (_name, query, path) => {
  it.each(faultyFilters)('with %s is named', async (_problem, filter, below) => {
    expect(await runQuery(query([validFilter, filter]))).toEqual({ status: 400, attr: `${path}__1${below}` });
    expect(await runQuery(query(inGroup(filter)))).toEqual({
      status: 400,
      attr: `${path}__values__1__values__1${below}`,
    });
  });
});

const useGroup = { type: 'person', key: 'plan', value: 'pro' };

it.each([
  ['an unknown field', unknownField, '__key'],
  ['an aggregate', aggregate, '__key'],
  ['a filter of events', validFilter, '__type'],
  ['a cohort without persons', unknownCohort, '__value'],
])('a filter of persons with %s is named', async (_problem, filter, below) => {
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
    trendsQuery({
      breakdownFilter: { breakdowns: [{ property: 'a' }, { type: 'hogql', property: 'nothing' }] },
    }),
    'query__breakdownFilter__breakdowns__1',
  ],
  [
    trendsQuery({
      breakdownFilter: { breakdowns: [{ property: 'a' }, { type: 'session', property: 'nothing' }] },
    }),
    'query__breakdownFilter__breakdowns__1',
  ],
  [
    trendsQuery({
      breakdownFilter: { breakdowns: [{ property: 'a' }, { type: 'group', property: 'plan' }] },
    }),
    'query__breakdownFilter__breakdowns__1',
  ],
  [trendsQuery({ breakdownFilter: { breakdown: ['a', {}] } }), 'query__breakdownFilter__breakdown__1'],
  [
    trendsQuery({ series: [node, { ...node, math: 'hogql', math_hogql: 'sum(nothing)' }] }),
    'query__series__1__math_hogql',
  ],
  [trendsQuery({ series: [node, { kind: 'Nothing' }] }), 'query__series__1__kind'],
  [trendsQuery({ series: [node, { ...node, math: 'most' }] }), 'query__series__1__math'],
  [trendsQuery({ trendsFilter: { formulas: ['A', 'A +'] } }), 'query__trendsFilter__formulas__1'],
  [
    trendsQuery({ trendsFilter: { formulaNodes: [{ formula: 'A' }, { formula: 'B' }] } }),
    'query__trendsFilter__formulaNodes__1__formula',
  ],
  [
    funnelsQuery({
      breakdownFilter: { breakdowns: [{ property: 'a' }, { type: 'hogql', property: 'nothing' }] },
    }),
    'query__breakdownFilter__breakdowns__1',
  ],
  [
    funnelsQuery({ breakdownFilter: { breakdown_type: 'hogql', breakdown: ['event', 'nothing'] } }),
    'query__breakdownFilter__breakdown__1',
  ],
  [
    funnelsQuery({ breakdownFilter: { breakdown_type: 'group', breakdown: 'plan' } }),
    'query__breakdownFilter__breakdown',
  ],
  [
    actorsQuery(
      'InsightActorsQuery',
      trendsQuery({
        series: [node, { ...node, ...uniqueGroups }],
        dateRange: { date_from: '2026-11-18', date_to: '2026-11-21' },
      }),
      { day: '2026-11-20', series: 1 },
    ),
    'query__source__source__series__1__math',
  ],
  [
    actorsQuery('FunnelsActorsQuery', funnelsQuery({ aggregation_group_type_index: 0 }), { funnelStep: 1 }),
    'query__source__source__aggregation_group_type_index',
  ],
  [
    {
      kind: 'ActorsQuery',
      source: { kind: 'DialectQuery', query: 'select $group_0 as group_key from events' },
    },
    'query__source__query',
  ],
  [funnelsQuery({ series: [node, { ...node, math: 'sum' }] }), 'query__series__1__math'],
  [
    funnelsQuery({ funnelsFilter: { exclusions: [exclusion, { ...exclusion, funnelToStep: 7 }] } }),
    'query__funnelsFilter__exclusions__1',
  ],
  [
    funnelsQuery({ funnelsFilter: { funnelAggregateByHogQL: 'nothing' } }),
    'query__funnelsFilter__funnelAggregateByHogQL',
  ],
  [{ kind: 'EventsQuery', select: ['event', 'person_id in cohort 77'] }, 'query__select__1'],
  [{ kind: 'EventsQuery', select: ['event'], where: ['1 = 1', 'person_id in cohort 77'] }, 'query__where__1'],
  [{ kind: 'ActorsQuery', orderBy: ['id', 'id in cohort 77 -- Paying DESC'] }, 'query__orderBy__1'],
  [
    {
      kind: 'ActorsQuery',
      source: { kind: 'DialectQuery', query: 'select id from persons where id in cohort 77' },
    },
    'query__source__query',
  ],
  [
    trendsQuery({
      series: [node, { ...node, math: 'hogql', math_hogql: 'countIf(person_id in cohort 77)' }],
    }),
    'query__series__1__math_hogql',
  ],
  [
    trendsQuery({
      breakdownFilter: {
        breakdowns: [{ property: 'a' }, { type: 'hogql', property: 'person_id in cohort 77' }],
      },
    }),
    'query__breakdownFilter__breakdowns__1',
  ],
  [
    funnelsQuery({
      breakdownFilter: { breakdown_type: 'hogql', breakdown: ['event', 'person_id in cohort 77'] },
    }),
    'query__breakdownFilter__breakdown__1',
  ],
])('%j', async (query, attr) => {
  expect(await runQuery(query)).toEqual({ status: 400, attr });
});
