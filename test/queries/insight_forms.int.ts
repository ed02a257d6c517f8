import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { openApiHarness, type ApiHarness } from '../http/api_harness.ts';

// Forms of insights that are common in dashboards and documents of the reference product, from outside, each with its
// answer or its refusal. Answers are computed from the rows below.

const days = ['2026-11-10', '2026-11-11', '2026-11-12'];
const plans = ['free', 'pro', 'pro', null];
const idOf = (person: number): string => `00000000-0000-0000-0000-00000000000${person}`;

interface Row {
  readonly person: number;
  readonly event: string;
  readonly day: number;
  /** Hours since midnight. */
  readonly hour: number;
  readonly url?: string;
  readonly company?: string;
}

/** Four persons; the third comes back on the last day, and the fourth only looks. */
const rows: readonly Row[] = [
  { person: 1, event: '$pageview', day: 0, hour: 8, url: 'https://shop.test/buy', company: 'acme' },
  { person: 1, event: 'bought', day: 0, hour: 9, company: 'acme' },
  { person: 1, event: '$pageview', day: 1, hour: 8, url: 'https://shop.test/', company: 'acme' },
  { person: 2, event: '$pageview', day: 0, hour: 10, url: 'https://shop.test/Buy', company: 'bolt' },
  { person: 2, event: '$pageview', day: 1, hour: 10, url: 'https://shop.test/buy?a=1', company: 'acme' },
  { person: 2, event: 'bought', day: 2, hour: 11, company: 'bolt' },
  { person: 3, event: '$pageview', day: 1, hour: 12, url: 'https://shop.test/buy/now' },
  { person: 3, event: 'left', day: 1, hour: 13 },
  { person: 3, event: 'bought', day: 1, hour: 14 },
  { person: 3, event: 'paid by invoice', day: 2, hour: 14 },
  { person: 4, event: '$pageview', day: 2, hour: 15, url: 'https://shop.test/' },
];

const cohorts: Readonly<Record<number, readonly number[]>> = { 5: [1, 2], 6: [2, 3] };
const isIn = (cohort: number, { person }: Row): boolean => cohorts[cohort]?.includes(person) === true;
const isView = ({ event }: Row): boolean => event === '$pageview';
const isPurchase = ({ event }: Row): boolean => event === 'bought' || event === 'paid by invoice';
const isOfBuying = (row: Row): boolean => isView(row) && row.url?.includes('/buy') === true;

/** The number of rows, or of distinct values, on each day. */
const perDay = (selected: (row: Row) => boolean, distinct?: (row: Row) => unknown): number[] =>
  days.map((_, day) => {
    const found = rows.filter((row) => row.day === day && selected(row));
    return distinct === undefined ? found.length : new Set(found.map(distinct).filter(Boolean)).size;
  });

/** How many persons did the first step, and then the second at a later time. */
const converted = (
  first: (row: Row) => boolean,
  second: (row: Row) => boolean,
  of: (row: Row) => boolean = () => true,
): number[] => {
  const entered = [1, 2, 3, 4].map((person) => rows.filter((row) => row.person === person && of(row)));
  const timeOf = ({ day, hour }: Row): number => day * 24 + hour;
  const did = entered.filter((own) => own.some(first));
  const both = did.filter((own) =>
    own.some((one) => first(one) && own.some((other) => second(other) && timeOf(other) > timeOf(one))),
  );
  return [did.length, both.length];
};

let api: ApiHarness;
let purchase: number;
let buying: number;
let leaving: number;
let foreign: number;
beforeAll(async () => {
  api = await openApiHarness({ EXPORTD_QUERIES_PER_HOUR: '100000' });
  const { pool } = api.database;
  await pool.query(
    `insert into public.events (team_id, uuid, event, distinct_id, properties, timestamp)
     select $1, gen_random_uuid(), event, 'd' || person,
       jsonb_strip_nulls(jsonb_build_object('$current_url', url, '$group_0', company)),
       (($3::text[])[day + 1] || 'T00:00:00Z')::timestamptz + hour * interval '1 hour'
     from jsonb_to_recordset($2) as x(person integer, event text, day integer, hour integer, url text, company text)`,
    [api.projectId, JSON.stringify(rows), days],
  );
  for (const [index, plan] of plans.entries()) {
    const person = [api.projectId, idOf(index + 1)];
    await pool.query(
      'insert into public.persons (team_id, id, properties, created_at) values ($1, $2, $3, now())',
      [...person, JSON.stringify({ plan })],
    );
    await pool.query(
      'insert into public.person_distinct_ids (team_id, person_id, distinct_id) values ($1, $2, $3)',
      [...person, `d${index + 1}`],
    );
  }
  for (const [cohort, persons] of Object.entries(cohorts))
    await pool.query(
      `insert into public.cohort_people (team_id, cohort_id, cohort_name, person_id)
       select $1, $2, $3, unnest($4::uuid[])`,
      [api.projectId, cohort, cohort === '5' ? 'Early' : null, persons.map(idOf)],
    );
  await pool.query(
    'insert into public.cohort_people (team_id, cohort_id, cohort_name, person_id) values ($1, 7, $2, $3)',
    [api.otherProjectId, 'Theirs', idOf(1)],
  );
  purchase = await createAction({
    name: 'Purchase',
    steps: [{ event: 'bought' }, { event: 'paid by invoice' }],
  });
  buying = await createAction({ name: 'Buying', steps: [{ event: '$pageview', url: '/buy' }] });
  leaving = await createAction({ name: 'Leaving', steps: [{ event: 'left' }] });
  const { key } = await api.newKey(api.otherProjectId);
  const { body } = await api.call(
    'POST',
    `/api/projects/${api.otherProjectId}/actions/`,
    { name: 'Theirs', steps: [{ event: 'bought' }] },
    { authorization: `Bearer ${key}` },
  );
  foreign = Number(body.id);
});
afterAll(() => api.close());

async function createAction(body: object): Promise<number> {
  const created = await api.call('POST', 'actions/', body);
  expect(created.status).toBe(201);
  return Number(created.body.id);
}

const dateRange = { date_from: days[0], date_to: days[2] };
const view = { kind: 'EventsNode', event: '$pageview' };
const trends = (more: object) => ({ kind: 'TrendsQuery', series: [view], dateRange, ...more });
const funnel = (more: object) => ({
  kind: 'FunnelsQuery',
  series: [view, { kind: 'EventsNode', event: 'bought' }],
  dateRange,
  ...more,
});
const events = (more: object) => ({
  kind: 'EventsQuery',
  select: ['count()'],
  after: '2026-11-01',
  before: '2026-12-01',
  ...more,
});
const inCohort = (value: unknown, more: object = {}) => ({ type: 'cohort', key: 'id', value, ...more });

interface Item {
  readonly label?: string;
  readonly data?: readonly number[];
  readonly breakdown_value?: unknown;
  readonly breakdown?: unknown;
  readonly count?: number;
  readonly name?: string;
}

const run = async (query: object) => {
  const { status, body } = await api.call('POST', 'query/', { query });
  return { status, body, results: (body.results ?? []) as readonly Item[] };
};
const dataOf = async (query: object) => (await run(query)).results.map(({ data }) => data);
const countsOf = async (query: object) => (await run(query)).results.map(({ count }) => count);

/** Each form by its id in the review, with what it answers and what is expected. */
const answered: readonly (readonly [id: string, answer: () => Promise<unknown>, expected: () => unknown])[] =
  [
    [
      'T02 a series without kind',
      () => dataOf(trends({ series: [{ event: '$pageview' }] })),
      () => [perDay(isView)],
    ],
    [
      'F36 steps and exclusions without kind',
      () =>
        countsOf(
          funnel({
            series: [{ event: '$pageview' }, { event: 'bought' }],
            funnelsFilter: { exclusions: [{ event: 'left', funnelFromStep: 0, funnelToStep: 1 }] },
          }),
        ),
      // The third person left in between, and so leaves the funnel.
      () =>
        converted(
          isView,
          ({ event }) => event === 'bought',
          ({ person }) => person !== 3,
        ),
    ],
    [
      'U11 null members of a node',
      () =>
        dataOf(trends({ series: [{ ...view, limit: null, orderBy: null, custom_name: null, math: null }] })),
      () => [perDay(isView)],
    ],
    [
      'U01 actions in a trend',
      () =>
        dataOf(
          trends({
            series: [
              { kind: 'ActionsNode', id: purchase },
              { kind: 'ActionsNode', id: buying, math: 'dau' },
            ],
          }),
        ),
      () => [perDay(isPurchase), perDay(isOfBuying, ({ person }) => person)],
    ],
    [
      'F35 actions in a funnel',
      () =>
        countsOf(
          funnel({
            series: [
              { kind: 'ActionsNode', id: buying },
              { kind: 'ActionsNode', id: purchase },
            ],
          }),
        ),
      () => converted(isOfBuying, isPurchase),
    ],
    [
      'F35 an action as exclusion',
      () =>
        countsOf(
          funnel({
            funnelsFilter: {
              exclusions: [{ kind: 'ActionsNode', id: leaving, funnelFromStep: 0, funnelToStep: 1 }],
            },
          }),
        ),
      () =>
        converted(
          isView,
          ({ event }) => event === 'bought',
          ({ person }) => person !== 3,
        ),
    ],
    [
      'E10 events of an action',
      async () => (await run(events({ actionId: purchase }))).results,
      () => [[rows.filter(isPurchase).length]],
    ],
    [
      'matchesAction() by name and by id',
      async () =>
        (
          await run({
            kind: 'HogQLQuery',
            query: `select countIf(matchesAction('Purchase')), countIf(matchesAction(${buying})) from events`,
          })
        ).results,
      () => [[rows.filter(isPurchase).length, rows.filter(isOfBuying).length]],
    ],
    [
      'A17 actors of an action and of a cohort',
      async () =>
        (
          await run({
            kind: 'ActorsQuery',
            select: ['id'],
            orderBy: ['id'],
            source: {
              kind: 'InsightActorsQuery',
              day: days[0],
              source: trends({ series: [{ kind: 'ActionsNode', id: buying }], properties: [inCohort(5)] }),
            },
          })
        ).results,
      () => [[idOf(1)]],
    ],
    [
      'A17 persons in a cohort, and not in it',
      async () => {
        const of = async (properties: object) =>
          (await run({ kind: 'ActorsQuery', select: ['id'], orderBy: ['id'], properties: [properties] }))
            .results;
        return [await of(inCohort(5)), await of(inCohort('6', { operator: 'not_in' }))];
      },
      () => [
        [[idOf(1)], [idOf(2)]],
        [[idOf(1)], [idOf(4)]],
      ],
    ],
    [
      'P11 a filter on a cohort',
      () => dataOf(trends({ properties: [inCohort(5, { operator: 'in', cohort_name: 'Early' })] })),
      () => [perDay((row) => isView(row) && isIn(5, row))],
    ],
    [
      'P11 the same by name, and in the legacy form',
      async () => [
        await dataOf(trends({ properties: [inCohort('Early')] })),
        await dataOf(trends({ properties: [inCohort(5, { operator: 'exact' })] })),
      ],
      () => Array.from({ length: 2 }, () => [perDay((row) => isView(row) && isIn(5, row))]),
    ],
    [
      'P28 a filter on who is not in a cohort',
      () =>
        dataOf(
          trends({
            properties: {
              type: 'AND',
              values: [{ type: 'OR', values: [inCohort(5, { operator: 'not_in' })] }],
            },
          }),
        ),
      () => [perDay((row) => isView(row) && !isIn(5, row))],
    ],
    [
      'P28 several cohorts',
      async () => [
        await dataOf(trends({ properties: [inCohort([5, 6])] })),
        await dataOf(trends({ properties: [inCohort([5, 6], { operator: 'not_in' })] })),
      ],
      () => [
        [perDay((row) => isView(row) && (isIn(5, row) || isIn(6, row)))],
        [perDay((row) => isView(row) && !isIn(5, row) && !isIn(6, row))],
      ],
    ],
    [
      'P11 cohorts in funnels, events and {filters}',
      async () => [
        await countsOf(funnel({ properties: [inCohort(6)] })),
        (await run(events({ properties: [inCohort(6)] }))).results,
        (
          await run({
            kind: 'DialectQuery',
            query: 'select count() from events as e where {filters}',
            filters: { properties: [inCohort(6)] },
          })
        ).results,
      ],
      () => {
        const count = [[rows.filter((row) => isIn(6, row)).length]];
        return [
          converted(
            isView,
            ({ event }) => event === 'bought',
            (row) => isIn(6, row),
          ),
          count,
          count,
        ];
      },
    ],
    [
      'T31 a breakdown by cohorts, which overlap, and everyone',
      async () =>
        (
          await run(
            trends({
              series: [view, { event: 'bought' }],
              breakdownFilter: { breakdown_type: 'cohort', breakdown: [5, 'all', '6'] },
            }),
          )
        ).results.map(({ label, data, breakdown_value }) => [label, breakdown_value, data]),
      () =>
        ['$pageview', 'bought'].flatMap((name) => {
          const of = (has: (row: Row) => boolean) => perDay((row) => row.event === name && has(row));
          return [
            [`${name} - Early`, 5, of((row) => isIn(5, row))],
            [`${name} - all users`, 'all', of(() => true)],
            [`${name} - Cohort 6`, 6, of((row) => isIn(6, row))],
          ];
        }),
    ],
    [
      'T31 a breakdown by one cohort, with a formula',
      async () =>
        (
          await run(
            trends({
              series: [view, { event: 'bought' }],
              breakdownFilter: { breakdown_type: 'cohort', breakdown: 5 },
              trendsFilter: { formula: 'A + B' },
            }),
          )
        ).results.map(({ data, breakdown_value }) => [breakdown_value, data]),
      () => [[5, perDay((row) => (isView(row) || row.event === 'bought') && isIn(5, row))]],
    ],
    [
      'T31 the actors of a point of a cohort',
      async () => {
        const of = async (breakdown: unknown) =>
          (
            await run({
              kind: 'ActorsQuery',
              select: ['id'],
              orderBy: ['id'],
              source: {
                kind: 'InsightActorsQuery',
                day: days[1],
                breakdown,
                source: trends({ breakdownFilter: { breakdown_type: 'cohort', breakdown: ['all', 6] } }),
              },
            })
          ).results.flat();
        return [await of(6), await of('all')];
      },
      () => [
        [idOf(2), idOf(3)],
        [idOf(1), idOf(2), idOf(3)],
      ],
    ],
    [
      'F26 a funnel broken down by cohorts',
      async () => {
        const { body } = await run(
          funnel({ breakdownFilter: { breakdown_type: 'cohort', breakdown: [5, 6, 'all'] } }),
        );
        return (body.results as readonly (readonly Item[])[]).map((steps) => [
          steps[0]?.breakdown,
          steps[0]?.breakdown_value,
          steps.map(({ count }) => count),
        ]);
      },
      () => {
        const bought = ({ event }: Row) => event === 'bought';
        return [
          ['Early', 5, converted(isView, bought, (row) => isIn(5, row))],
          ['Cohort 6', 6, converted(isView, bought, (row) => isIn(6, row))],
          ['all users', 0, converted(isView, bought)],
        ];
      },
    ],
    [
      'F26 the actors of a step, and the trend of a cohort',
      async () => {
        const source = funnel({ breakdownFilter: { breakdown_type: 'cohort', breakdown: [5, 'all'] } });
        const of = async (funnelStepBreakdown: unknown) =>
          (
            await run({
              kind: 'ActorsQuery',
              select: ['id'],
              orderBy: ['id'],
              source: { kind: 'FunnelsActorsQuery', source, funnelStep: 2, funnelStepBreakdown },
            })
          ).results.flat();
        const trend = await run({ ...source, funnelsFilter: { funnelVizType: 'trends' } });
        return [
          await of(5),
          await of(0),
          trend.results.map(({ breakdown_value, data }) => [breakdown_value, data]),
        ];
      },
      // Of the first day, all convert. Of the second, the first person does not; of the third, neither does the fourth.
      () => [
        [idOf(1), idOf(2)],
        [idOf(1), idOf(2), idOf(3)],
        [
          [5, [100, 50, 0]],
          [0, [100, 66.67, 0]],
        ],
      ],
    ],
    [
      'U09 aggregation_group_type_index in a trend',
      async () => [
        await dataOf(
          trends({ series: [{ ...view, math: 'unique_group' }], aggregation_group_type_index: 0 }),
        ),
        await dataOf(trends({ series: [{ ...view, math: 'dau' }], aggregation_group_type_index: 0 })),
      ],
      () => [[perDay(isView, ({ company }) => company)], [perDay(isView, ({ person }) => person)]],
    ],
    [
      'a breakdown by no cohorts',
      () => dataOf(trends({ breakdownFilter: { breakdown_type: 'cohort', breakdown: [] } })),
      () => [perDay(isView)],
    ],
    [
      'wrappers of saved views',
      () => dataOf({ kind: 'InsightVizNode', source: trends({ series: [{ event: 'bought', name: null }] }) }),
      () => [perDay(({ event }) => event === 'bought')],
    ],
  ];

describe('a form of an insight is answered', () => {
  it.each(answered)('%s', async (_id, answer, expected) => {
    expect(await answer()).toEqual(expected());
  });
});

const kinds =
  /Supported kinds: ActorsQuery, DialectQuery, EventsQuery, FunnelsQuery, HogQLQuery, TrendsQuery/;

/** Each form by its id in the review, with the field that the refusal names and what it says. */
const refused: readonly (readonly [id: string, query: () => object, attr: string, detail: RegExp])[] = [
  ...[
    'RetentionQuery',
    'PathsQuery',
    'LifecycleQuery',
    'StickinessQuery',
    'WebOverviewQuery',
    'WebStatsTableQuery',
    'FunnelCorrelationQuery',
    'CalendarHeatmapQuery',
  ].map((kind) => [`K00–K11 ${kind}`, () => ({ kind, dateRange }), 'query__kind', kinds] as const),
  [
    'A13 actors of retention',
    () => ({
      kind: 'ActorsQuery',
      source: { kind: 'InsightActorsQuery', source: { kind: 'RetentionQuery' }, interval: 0 },
    }),
    'query__source__source__kind',
    /Supported kinds: TrendsQuery/,
  ],
  [
    'P15 a filter on a selector',
    () => trends({ properties: [{ type: 'element', key: 'selector', value: '.buy' }] }),
    'query__properties__0__type',
    /elements_chain/,
  ],
  [
    'P16 a filter on the text of an element',
    () => trends({ properties: [{ type: 'element', key: 'text', operator: 'icontains', value: 'Buy' }] }),
    'query__properties__0__type',
    /elements_chain/,
  ],
  [
    'U02 a series over a warehouse table',
    () =>
      trends({
        series: [
          {
            kind: 'DataWarehouseNode',
            id: 'orders',
            table_name: 'orders',
            id_field: 'id',
            timestamp_field: 'at',
            distinct_id_field: 'by',
          },
        ],
      }),
    'query__series__0__kind',
    /Use a DialectQuery/,
  ],
  [
    'A15 a group of nodes',
    () => trends({ series: [{ kind: 'GroupNode', operator: 'OR', nodes: [view] }] }),
    'query__series__0__kind',
    /Define an action/,
  ],
  [
    'an unknown kind of node',
    () => trends({ series: [{ kind: 'EventNode' }] }),
    'query__series__0__kind',
    /EventsNode, ActionsNode/,
  ],
  [
    'an action that does not exist',
    () => trends({ series: [{ kind: 'ActionsNode', id: 2_000_000_000 }] }),
    'query__series__0__id',
    /^This project has no action 2000000000\.$/,
  ],
  [
    'an action of another project',
    () => funnel({ series: [view, { kind: 'ActionsNode', id: foreign }] }),
    'query__series__1__id',
    /^This project has no action \d+\.$/,
  ],
  [
    'an action of another project as exclusion',
    () =>
      funnel({
        funnelsFilter: {
          exclusions: [{ kind: 'ActionsNode', id: foreign, funnelFromStep: 0, funnelToStep: 1 }],
        },
      }),
    'query__funnelsFilter__exclusions__0__id',
    /has no action/,
  ],
  [
    'events of such an action',
    () => events({ actionId: foreign }),
    'query__actionId',
    /^This project has no action \d+\.$/,
  ],
  [
    'matchesAction() of such an action, by name',
    () => ({ kind: 'DialectQuery', query: "select 1 from events where matchesAction('Theirs')" }),
    'query__query',
    /^This project has no action 'Theirs'\. \(line 1/,
  ],
  [
    'matchesAction() with a misspelled name',
    () => ({ kind: 'DialectQuery', query: "select 1 from events where matchesAction('Purchas')" }),
    'query__query',
    /Perhaps you meant `Purchase`\?/,
  ],
  [
    'an action in a filter',
    () => trends({ properties: [{ type: 'hogql', key: `matchesAction(${foreign})` }] }),
    'query__properties__0__key',
    /has no action/,
  ],
  [
    'a cohort that has no persons',
    () => trends({ properties: [inCohort(99)] }),
    'query__properties__0__value',
    /^No person of this project is in the cohort 99\.$/,
  ],
  [
    'a cohort of another project',
    () => trends({ properties: [inCohort(7)] }),
    'query__properties__0__value',
    /^No person of this project is in the cohort 7\.$/,
  ],
  [
    'a breakdown by such a cohort',
    () => trends({ breakdownFilter: { breakdown_type: 'cohort', breakdown: [5, 'Theirs'] } }),
    'query__breakdownFilter__breakdown',
    /in the cohort Theirs/,
  ],
  [
    'a breakdown by a cohort and a property',
    () =>
      trends({ breakdownFilter: { breakdowns: [{ type: 'cohort', property: 5 }, { property: 'plan' }] } }),
    'query__breakdownFilter__breakdowns__0',
    /cannot be combined/,
  ],
  [
    'a breakdown by too many cohorts',
    () =>
      funnel({
        breakdownFilter: {
          breakdown_type: 'cohort',
          breakdown: Array.from({ length: 26 }, (_, id) => id + 1),
        },
      }),
    'query__breakdownFilter__breakdown',
    /at most 25 cohorts/,
  ],
  [
    'a cohort by a part of its id',
    () => trends({ properties: [inCohort(5.5)] }),
    'query__properties__0__value',
    /id or the name of a cohort/,
  ],
  [
    'an operator that cohorts lack',
    () => trends({ properties: [inCohort(5, { operator: 'icontains' })] }),
    'query__properties__0__operator',
    /in or not_in/,
  ],
];

describe('a form of an insight is refused by name', () => {
  it.each(refused)('%s', async (_id, query, attr, detail) => {
    const { status, body } = await run(query());
    expect([status, body.attr, body.detail]).toEqual([400, attr, expect.stringMatching(detail)]);
  });
});
