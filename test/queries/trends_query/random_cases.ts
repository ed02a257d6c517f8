import fc from 'fast-check';
import { DateTime } from 'luxon';
import type { ReferenceEvent } from './reference_math.ts';
import type { ProjectAction } from '../../../src/queries/actions.ts';
import type {
  ReferenceBreakdown,
  ReferenceCohort,
  ReferenceQuery,
  ReferenceSeries,
} from './reference_trends.ts';

export const now = new Date('2026-11-05T12:00:00Z');
const personIds = [1, 2, 3, 4].map((number) => `00000000-0000-0000-0000-00000000000${number}`);

/** The persons of every case. */
export const personsOfCases = personIds.map((id, index) => ({
  id,
  properties: { country: ['de', 'fr', '', null][index] },
}));

/** The cohorts of every case: they overlap, and leave the last person out. */
export const cohortsOfCases = [
  { id: 11, name: 'Eleven', persons: personIds.slice(0, 2) },
  { id: 12, name: null, persons: personIds.slice(1, 3) },
];

const cohorts: readonly ReferenceCohort[] = [
  ...cohortsOfCases.map(({ id, persons }) => ({
    name: String(id),
    has: ({ person_id }: ReferenceEvent) => person_id !== null && persons.includes(person_id),
  })),
  { name: 'all', has: () => true },
];

/** The actions of every case, as the project has them and as the reference implementation knows them. */
const actions: readonly (ProjectAction & { readonly matches: (event: ReferenceEvent) => boolean })[] = [
  {
    id: 1,
    name: 'a, or b of x',
    steps: [
      { event: 'a' },
      { event: 'b', properties: [{ type: 'event', key: 'plan', operator: 'exact', value: 'x' }] },
    ],
    matches: ({ event, properties }) => event === 'a' || (event === 'b' && properties.plan === 'x'),
  },
  {
    id: 2,
    name: 'on a page, outside of cohort 11',
    steps: [
      {
        url: '/Buy%2',
        properties: [{ type: 'cohort', key: 'id', operator: 'not_in', value: 11 }],
      },
    ],
    matches: (event) =>
      /\/Buy.*2/s.test(textOf(event.properties.$current_url) ?? '') && cohorts[0]?.has(event) === false,
  },
];
export const actionsOfCases: readonly ProjectAction[] = actions.map(({ id, name, steps }) => ({
  id,
  name,
  steps,
}));

/** The stored groups of every case. */
export const groupsOfCases = [
  { key: 'g1', properties: { tier: 'gold' } },
  { key: 'g2', properties: { tier: 'base' } },
];

const plans = ['x', 'y', 'Zoë', '', null, true, 5];

const eventOf = (timezone: string): fc.Arbitrary<ReferenceEvent> =>
  fc.record({
    event: fc.constantFrom('a', 'b', 'c'),
    distinct_id: fc.constantFrom('d1', 'd2'),
    person_id: fc.constantFrom(...personIds, null),
    properties: fc.record(
      {
        plan: fc.constantFrom(...plans),
        price: fc.constantFrom(0, 1, 2, 5, -3, '7', 'dear', 'NaN', 'Infinity', null),
        url: fc.constantFrom('https://ex.com', 'https://ex.com/', 'https://ex.com/#?', '/', ''),
        $current_url: fc.constantFrom('https://ex.com/Buy/12', 'https://ex.com/Buy', '/buy/2', 5),
        $session_id: fc.constantFrom('s1', 's2', 's3', ''),
        $group_0: fc.constantFrom('g1', 'g2', 'g3', ''),
      },
      { requiredKeys: [] },
    ),
    // Seconds from the middle of September, half of them in the last weeks, which contain a clock change.
    time: fc
      .oneof(fc.integer({ min: 0, max: 4_400_000 }), fc.integer({ min: 3_300_000, max: 4_400_000 }))
      .map((seconds) => DateTime.fromISO('2026-09-15T00:00:00Z').plus({ seconds }).setZone(timezone)),
  });

/** Events of a project in a zone. */
export const eventsOf = (timezone: string): fc.Arbitrary<readonly ReferenceEvent[]> =>
  fc.array(eventOf(timezone), { minLength: 0, maxLength: 60 });

const textOf = (value: unknown): string | null =>
  value === null || value === undefined ? null : typeof value === 'string' ? value : JSON.stringify(value);

function normalized(text: string | null): string | null {
  if (text === null || text === '') return null;
  return text.replace(/[/?#]+$/, '') || '/';
}

/** A breakdown as in a request, and how to read it from an event. */
interface CaseBreakdown {
  readonly field: object;
  readonly read: ReferenceBreakdown;
}

const tiers = new Map(groupsOfCases.map(({ key, properties }) => [key, properties.tier]));
const countries = new Map(personsOfCases.map(({ id, properties }) => [id, properties.country ?? null]));
const breakdowns: readonly CaseBreakdown[] = [
  { field: { property: 'plan' }, read: ({ properties }) => textOf(properties.plan) },
  { field: { property: 'plan', type: 'event' }, read: ({ properties }) => textOf(properties.plan) },
  {
    field: { property: 'url', normalize_url: true },
    read: ({ properties }) => normalized(textOf(properties.url)),
  },
  { field: { property: 'event', type: 'event_metadata' }, read: ({ event }) => event },
  {
    field: { property: '$group_key', type: 'group', group_type_index: 0 },
    read: ({ properties }) => textOf(properties.$group_0),
  },
  {
    field: { property: 'tier', type: 'group', group_type_index: 0 },
    read: ({ properties }) => tiers.get(textOf(properties.$group_0) ?? '') ?? null,
  },
  {
    field: { property: 'country', type: 'person' },
    read: ({ person_id }) => countries.get(person_id ?? '') ?? null,
  },
  {
    field: { property: "concat(event, '-', distinct_id)", type: 'hogql' },
    read: ({ event, distinct_id }) => `${event}-${distinct_id}`,
  },
];

type SeriesMath = Omit<ReferenceSeries, 'selects' | 'plan' | 'cohort'>;

/** Maths whose values do not depend on the order of addition. */
const maths: readonly SeriesMath[] = [
  ...['total', 'dau', 'weekly_active', 'monthly_active', 'unique_session', 'first_time_for_user'].map(
    (math) => ({ math }),
  ),
  ...[
    'first_matching_event_for_user',
    'max_count_per_actor',
    'median_count_per_actor',
    'p75_count_per_actor',
  ].map((math) => ({ math })),
  ...['sum', 'min', 'max', 'median', 'p75'].map((math) => ({ math, math_property: 'price' })),
  { math: 'sum', math_property: 'price', math_multiplier: -2 },
  { math: 'max', math_property: '$session_duration' },
  { math: 'sum', math_property: '$session_duration' },
  { math: 'unique_group', math_group_type_index: 0 },
  { math: 'hogql', math_hogql: "count() * 2 + countIf(event = 'a')" },
];

/** Maths whose last digits depend on it. */
const inexactMaths: readonly SeriesMath[] = [
  ...['avg', 'p90', 'p95', 'p99'].map((math) => ({ math, math_property: 'price' })),
  ...['avg', 'p90', 'p95', 'p99'].map((math) => ({ math: `${math}_count_per_actor` })),
  { math: 'avg', math_property: '$session_duration' },
];

/** A node of a series, and the events that it selects. */
interface CaseNode {
  readonly node: object;
  readonly selects: (event: ReferenceEvent) => boolean;
}

const nodes: readonly CaseNode[] = [
  ...['a', 'b'].map((name) => ({
    node: { kind: 'EventsNode', event: name },
    selects: ({ event }: ReferenceEvent) => event === name,
  })),
  { node: { event: 'a' }, selects: ({ event }) => event === 'a' },
  { node: { kind: 'EventsNode', event: null }, selects: () => true },
  ...actions.map(({ id, matches }) => ({ node: { kind: 'ActionsNode', id }, selects: matches })),
];

/** A series as in a request, and as the reference implementation knows it. */
interface CaseSeries {
  readonly field: { readonly properties?: readonly object[] };
  readonly series: ReferenceSeries;
}

const cohortFilters = cohorts.slice(0, -1).flatMap((cohort, index) => [
  { value: cohortsOfCases[index]?.id, has: cohort.has },
  { operator: 'not_in', value: cohort.name, has: (event: ReferenceEvent) => !cohort.has(event) },
]);

const seriesOf = (kinds: readonly SeriesMath[]): fc.Arbitrary<CaseSeries> =>
  fc
    .record({
      math: fc.constantFrom(...kinds),
      of: fc.constantFrom(...nodes),
      plan: fc.option(fc.constantFrom('x', 'y'), { freq: 3 }),
      cohort: fc.option(fc.constantFrom(...cohortFilters), { freq: 3 }),
    })
    .map(({ math, of, plan, cohort }) => ({
      field: {
        ...of.node,
        ...math,
        properties: [
          ...(plan === null ? [] : [{ type: 'event', key: 'plan', operator: 'exact', value: plan }]),
          ...(cohort === null
            ? []
            : [{ type: 'cohort', key: 'id', operator: cohort.operator ?? null, value: cohort.value }]),
        ],
      },
      series: { ...math, selects: of.selects, plan, cohort: cohort?.has ?? (() => true) },
    }));

const ranges: readonly (readonly [string, object])[] = [
  ['day', {}],
  ['day', { date_from: '-14d', date_to: '-2d' }],
  ['day', { date_from: '2026-10-20', date_to: '2026-10-27' }],
  ['day', { date_from: 'all' }],
  ['week', { date_from: '-40d' }],
  ['week', { date_from: '2026-10-01', date_to: '2026-10-31' }],
  ['month', { date_from: '-2m' }],
  ['month', { date_from: 'yStart', date_to: '2026-10-10' }],
  ['hour', { date_from: '2026-10-24', date_to: '2026-10-26' }],
  ['hour', { date_from: '-3d' }],
  ['minute', { date_from: '2026-10-25T00:00:00', date_to: '2026-10-25T04:00:00' }],
  ['day', { date_from: '2026-10-20T10:00:00', date_to: '2026-10-25T09:00:00', explicitDate: true }],
];

const formulas: readonly (readonly [string, (values: readonly number[]) => number])[] = [
  ['A + B', ([a = 0, b = 0]) => a + b],
  ['A / B * 100', ([a = 0, b = 0]) => (b === 0 ? 0 : (a / b) * 100)],
  ['-(a - B) ** 2 % 7', ([a = 0, b = 0]) => -((a - b) ** 2) % 7],
];

/** A query as in a request, and what the reference implementation needs to know of it. */
export interface TrendsCase {
  readonly request: {
    readonly interval: string;
    readonly dateRange: object;
    readonly compareFilter: { readonly compare_to?: string } | null;
  };
  readonly query: {
    readonly series: readonly object[];
    readonly trendsFilter: { readonly display: string };
    readonly samplingFactor?: number;
  };
  readonly reference: ReferenceQuery;
}

/** @param exact whether values are equal in all digits, so that sums of them can be compared */
export const trendsCase = (exact: boolean): fc.Arbitrary<TrendsCase> =>
  fc
    .record({
      series: fc.array(seriesOf(exact ? maths : inexactMaths), { minLength: 1, maxLength: exact ? 3 : 1 }),
      range: fc.constantFrom(...ranges),
      display: fc.constantFrom(
        'ActionsLineGraph',
        'ActionsLineGraph',
        'ActionsLineGraphCumulative',
        'BoldNumber',
      ),
      breakdowns: fc.uniqueArray(fc.constantFrom(...breakdowns), { minLength: 0, maxLength: exact ? 3 : 0 }),
      cohorts: fc.option(fc.uniqueArray(fc.constantFrom(...cohorts), { minLength: 1 }), { freq: 3 }),
      limit: fc.constantFrom(1, 2, 4, 25),
      hideOther: fc.boolean(),
      smoothing: fc.constantFrom(1, 1, 3),
      formula: fc.option(fc.constantFrom(...formulas), { freq: 3 }),
      compare: fc.constantFrom(null, null, { compare: true }, { compare: true, compare_to: '-1w' }),
    })
    .map(({ series, range: [interval, dateRange], display, compare, ...one }) => {
      const formula = series.length > 1 && exact ? one.formula : null;
      const smoothing = exact ? one.smoothing : 1;
      const isByCohort = one.cohorts !== null;
      const request = { interval, dateRange, compareFilter: compare };
      const query = {
        ...request,
        series: series.map(({ field }) => field),
        breakdownFilter: {
          ...(isByCohort && { breakdown_type: 'cohort', breakdown: one.cohorts?.map(({ name }) => name) }),
          ...(!isByCohort &&
            one.breakdowns.length > 0 && { breakdowns: one.breakdowns.map(({ field }) => field) }),
          breakdown_limit: one.limit,
          breakdown_hide_other_aggregation: one.hideOther,
        },
        trendsFilter: { display, smoothingIntervals: smoothing, ...(formula && { formula: formula[0] }) },
      };
      const forms = {
        ActionsLineGraph: 'timeSeries',
        ActionsLineGraphCumulative: 'cumulative',
        BoldNumber: 'totalValue',
      } as const;
      const reference: ReferenceQuery = {
        series: series.map((each) => each.series),
        display: forms[display],
        breakdowns: isByCohort ? [] : one.breakdowns.map(({ read }) => read),
        cohorts: one.cohorts,
        limit: one.limit,
        hideOther: one.hideOther,
        smoothing,
        formula: formula?.[1] ?? null,
      };
      return { request, query, reference };
    });

const withoutMath = {
  math_property: null,
  math_multiplier: null,
  math_hogql: null,
  math_group_type_index: null,
};

/** The same case with one math for all series, and without smoothing and cumulation. */
export function withMath({ request, query, reference }: TrendsCase, math: string): TrendsCase {
  const { series, trendsFilter, ...rest } = query;
  const [first] = series;
  const { display } = trendsFilter;
  return {
    request,
    query: {
      ...rest,
      series: [{ ...first, ...withoutMath, math }],
      trendsFilter: { display },
    },
    reference,
  };
}
