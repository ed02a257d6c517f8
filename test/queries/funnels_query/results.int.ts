import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { openApiHarness, type ApiHarness } from '../../http/api_harness.ts';
import { insertEvents } from './run_funnels_query.ts';
import type { ReferenceEvent } from './reference_events.ts';

let api: ApiHarness;
const minute = 60_000;
const start = Date.UTC(2026, 10, 10, 8);

/** Actors, their events, and the minutes after which they happened. */
const story: readonly (readonly [person: number, event: string, minutes: number, plan: string])[] = [
  [1, 'view', 0, 'free'],
  [1, 'signup', 10, 'pro'],
  [1, 'bought', 30, 'pro'],
  [2, 'view', 0, 'free'],
  [2, 'signup', 20, ''],
  [2, 'help', 25, ''],
  [3, 'view', 60 * 24, 'team'],
  [3, 'chat', 60 * 24 + 2, 'team'],
  [3, 'bought', 60 * 24 + 5, 'team'],
];

const events: readonly ReferenceEvent[] = story.map(([person, event, minutes, plan], index) => ({
  uuid: `10000000-0000-0000-0000-${String(index).padStart(12, '0')}`,
  actor: `00000000-0000-0000-0000-00000000000${person}`,
  at: start + minutes * minute,
  event,
  size: 's',
  plan,
  region: null,
}));

beforeAll(async () => {
  api = await openApiHarness();
  await insertEvents(api.database.pool, api.projectId, events);
  await api.database.pool.query(
    `insert into public.persons (team_id, id, properties) values ($1, $2, '{"city": "Ulm"}')`,
    [api.projectId, events[0]?.actor],
  );
  await insertEvents(
    api.database.pool,
    api.otherProjectId,
    events.map((event) => ({ ...event, uuid: event.uuid.replace('1', '2') })),
  );
});
afterAll(() => api.close());

const series = ['view', 'signup', 'bought'].map((event) => ({ kind: 'EventsNode', event }));
const runQuery = (more: object = {}, fields: object = {}) =>
  api.call('POST', `/api/projects/${api.projectId}/query/`, {
    query: {
      kind: 'FunnelsQuery',
      series,
      dateRange: { date_from: '2026-11-09', date_to: '2026-11-12' },
      ...more,
    },
    ...fields,
  });
const counts = (results: unknown): readonly unknown[] =>
  (results as { count: number }[]).map(({ count }) => count);

describe('FunnelsQuery', () => {
  it('returns steps with counts and times', async () => {
    const { status, body } = await runQuery({
      series: [...series.slice(0, 2), { ...series[2], custom_name: 'Paid' }],
    });
    expect([status, body]).toMatchObject([
      200,
      {
        results: [
          {
            action_id: 'view',
            name: 'view',
            custom_name: null,
            order: 0,
            people: [],
            count: 3,
            type: 'events',
            average_conversion_time: null,
            median_conversion_time: null,
          },
          { order: 1, count: 2, average_conversion_time: 900, median_conversion_time: 900 },
          { order: 2, custom_name: 'Paid', count: 1, average_conversion_time: 1200 },
        ],
        dialect_query: expect.stringMatching(/^SELECT/),
        resolved_date_range: { date_from: expect.stringMatching(/^2026-11-09T00:00:00/) },
        is_cached: false,
      },
    ]);
  });

  it('returns an empty list if no person entered', async () => {
    const nobody = await runQuery({ series: [{ kind: 'EventsNode', event: 'none' }, series[1]] });
    expect(nobody.body.results).toEqual([]);
  });

  it('supports windows, strict and any order, and other actors', async () => {
    const filter = (funnelsFilter: object, more: object = {}) =>
      runQuery({ funnelsFilter, ...more }).then(({ body }) => counts(body.results));
    expect(await filter({ funnelWindowInterval: 10, funnelWindowIntervalUnit: 'minute' })).toEqual([3, 1, 0]);
    expect(await filter({ funnelWindowInterval: 599, funnelWindowIntervalUnit: 'second' })).toEqual([
      3, 0, 0,
    ]);
    expect(await filter({ funnelOrderType: 'strict' })).toEqual([3, 2, 1]);
    expect(await filter({ funnelOrderType: 'unordered' })).toEqual([3, 3, 1]);
    expect(await filter({ funnelAggregateByDialect: 'properties.size' })).toEqual([1, 1, 1]);
    expect(await filter({}, { aggregation_group_type_index: 0 })).toEqual([]);
    expect(
      await filter({}, { properties: [{ type: 'event', key: 'plan', value: 'team', operator: 'is_not' }] }),
    ).toEqual([2, 2, 1]);
  });

  it('names steps in any order by their number', async () => {
    const { body } = await runQuery({ funnelsFilter: { funnelOrderType: 'unordered' } });
    expect(body.results).toMatchObject([
      { action_id: null, name: 'Completed 1 step' },
      { action_id: null, name: 'Completed 2 steps' },
      { action_id: null, name: 'Completed 3 steps' },
    ]);
  });

  it('skips optional steps, and persons with an excluded event', async () => {
    const [view, signup, bought] = series;
    const optional = await runQuery({ series: [view, { ...signup, optionalInFunnel: true }, bought] });
    expect(counts(optional.body.results)).toEqual([3, 2, 2]);
    const help = { kind: 'EventsNode', event: 'help', funnelFromStep: 1, funnelToStep: 2 };
    const excluded = await runQuery({ funnelsFilter: { exclusions: [help] } });
    expect(counts(excluded.body.results)).toEqual([2, 1, 1]);
    const chat = { kind: 'EventsNode', event: 'chat', funnelFromStep: 0, funnelToStep: 1 };
    const both = await runQuery({
      series: [view, { ...signup, optionalInFunnel: true }, bought],
      funnelsFilter: { exclusions: [chat] },
    });
    expect(counts(both.body.results)).toEqual([2, 2, 1]);
  });

  it('returns a list for each breakdown value', async () => {
    const byPlan = { breakdownFilter: { breakdown: 'plan' } };
    const first = await runQuery(byPlan);
    expect(first.body.results).toMatchObject([
      [{ breakdown: ['free'], breakdown_value: ['free'], count: 2 }, { count: 2 }, { count: 1 }],
      [{ breakdown_value: ['team'], count: 1 }, { count: 0 }, { count: 0 }],
    ]);
    const step = await runQuery({
      ...byPlan,
      funnelsFilter: { breakdownAttributionType: 'step', breakdownAttributionValue: 1 },
    });
    const countsByValue = (step.body.results as { breakdown_value: string[]; count: number }[][]).map(
      (steps) => [steps[0]?.breakdown_value, counts(steps)],
    );
    expect(countsByValue).toEqual([
      [['pro'], [1, 1, 1]],
      [[''], [2, 1, 0]],
    ]);
    const other = await runQuery({
      breakdownFilter: { breakdown: 'properties.plan', breakdown_type: 'hogql', breakdown_limit: 1 },
    });
    expect(
      (other.body.results as { breakdown_value: string }[][]).map((steps) => steps[0]?.breakdown_value),
    ).toEqual(['free', 'Other']);
  });

  it('returns the time to convert as one object', async () => {
    const { status, body } = await runQuery({
      funnelsFilter: { funnelVizType: 'time_to_convert', funnelToStep: 1, binCount: 2 },
    });
    expect([status, body.results]).toEqual([
      200,
      {
        bins: [
          [600, 1],
          [900, 0],
          [1200, 1],
        ],
        average_conversion_time: 900,
      },
    ]);
    const again = await runQuery({
      funnelsFilter: { funnelVizType: 'time_to_convert', funnelToStep: 1, binCount: 2 },
    });
    expect([again.body.is_cached, again.body.results]).toEqual([true, body.results]);
  });

  it('returns a trend by the interval in which persons entered', async () => {
    const { body } = await runQuery({ funnelsFilter: { funnelVizType: 'trends' }, interval: 'day' });
    expect(body.results).toEqual([
      {
        count: 4,
        data: [0, 50, 0, 0],
        days: ['2026-11-09', '2026-11-10', '2026-11-11', '2026-11-12'],
        labels: ['9-Nov-2026', '10-Nov-2026', '11-Nov-2026', '12-Nov-2026'],
      },
    ]);
  });

  it('breaks down by persons, sessions, expressions and event metadata', async () => {
    const values = async (breakdown_type: string, breakdown: string) => {
      const { body } = await runQuery({ breakdownFilter: { breakdown, breakdown_type } });
      return (body.results as { breakdown_value: unknown; count: number }[][]).map(([first]) => [
        first?.breakdown_value,
        first?.count,
      ]);
    };
    expect(await values('person', 'city')).toEqual([
      [['Ulm'], 1],
      [[''], 2],
    ]);
    expect(await values('session', 'id')).toEqual([['', 3]]);
    expect(await values('dialect', 'upper(properties.size)')).toEqual([['S', 3]]);
    expect(await values('event_metadata', 'event')).toEqual([['view', 3]]);
  });

  it('supports date_from all and excludes test accounts if requested', async () => {
    const all = await runQuery({ dateRange: { date_from: 'all', date_to: '2026-11-12' } });
    expect([counts(all.body.results), all.body.resolved_date_range]).toMatchObject([
      [3, 2, 1],
      { date_from: expect.stringMatching(/^2026-11-10T00:00:00/) },
    ]);
    await api.database.pool.query(
      `update exportd.projects set test_account_filters = '[{"type": "person", "key": "city", "value": "Ulm", "operator": "is_not"}]' where id = $1`,
      [api.projectId],
    );
    expect(counts((await runQuery({ filterTestAccounts: true })).body.results)).toEqual([2, 1, 0]);
  });

  it("applies a dashboard's filters", async () => {
    const { body } = await runQuery(
      {},
      { filters_override: { date_from: '2026-11-11', date_to: '2026-11-12' } },
    );
    expect(counts(body.results)).toEqual([1, 0, 0]);
  });
});

const filterOf = (funnelsFilter: object) => ({ funnelsFilter });
const excluding = (event: string, funnelFromStep: number, funnelToStep: number) => ({
  exclusions: [{ kind: 'EventsNode', event, funnelFromStep, funnelToStep }],
});
const rejected: readonly (readonly [what: object, attr: string, detail: RegExp])[] = [
  [{ series: series.slice(0, 1) }, 'query__series', /at least two steps/],
  [{ samplingFactor: 0 }, 'query__samplingFactor', /greater than 0 and at most 1, such as 0.1/],
  [{ series: [series[0], { kind: 'ActionsNode', id: 3 }] }, 'query__series__1__id', /no action 3/],
  [
    { breakdownFilter: { breakdown: 7, breakdown_type: 'cohort' } },
    'query__breakdownFilter__breakdown',
    /cohort/,
  ],
  [
    { breakdownFilter: { breakdown: 'nothing(', breakdown_type: 'hogql' } },
    'query__breakdownFilter__breakdown',
    /line 1/,
  ],
  [
    { breakdownFilter: { breakdown: 'count()', breakdown_type: 'hogql' } },
    'query__breakdownFilter__breakdown',
    /is not allowed in WHERE/,
  ],
  [
    { breakdownFilter: { breakdown: 'price', breakdown_histogram_bin_count: 4 } },
    'query__breakdownFilter__breakdown',
    /histogram bins/,
  ],
  [
    filterOf({ funnelAggregateByHogQL: 'missing_field' }),
    'query__funnelsFilter__funnelAggregateByHogQL',
    /missing_field/,
  ],
  [filterOf({ funnelFromStep: 2 }), 'query__funnelsFilter__funnelFromStep', /must be between 0 and 1/],
  [filterOf({ funnelToStep: 3 }), 'query__funnelsFilter__funnelToStep', /must be between 1 and 2/],
  [
    filterOf({ funnelFromStep: 1, funnelToStep: 1 }),
    'query__funnelsFilter__funnelToStep',
    /^Funnel step range is invalid/,
  ],
  [
    filterOf(excluding('help', 1, 1)),
    'query__funnelsFilter__exclusions__0',
    /End of range should be greater/,
  ],
  [filterOf(excluding('help', 2, 3)), 'query__funnelsFilter__exclusions__0', /Start of range is greater/],
  [filterOf(excluding('help', 0, 3)), 'query__funnelsFilter__exclusions__0', /End of range is greater/],
  [filterOf(excluding('signup', 0, 2)), 'query__funnelsFilter__exclusions__0', /part of funnel steps/],
  [
    filterOf({ funnelOrderType: 'unordered', ...excluding('help', 0, 1) }),
    'query__funnelsFilter__exclusions__0',
    /Partial Exclusions not allowed/,
  ],
  [
    { series: [{ ...series[0], optionalInFunnel: true }, series[1]] },
    'query__series__0__optionalInFunnel',
    /first step of a funnel cannot be optional/,
  ],
  [
    {
      series: [series[0], { ...series[1], optionalInFunnel: true }],
      ...filterOf({ funnelVizType: 'trends' }),
    },
    'query__series__1__optionalInFunnel',
    /only supported/,
  ],
  [{ dateRange: { date_from: 'soon' } }, 'query__dateRange__date_from', /not a valid date/],
];

describe('invalid funnels', () => {
  it.each(rejected)('%j is rejected at %s', async (what, attr, detail) => {
    const { status, body } = await runQuery(what);
    expect([status, body.attr, body.detail]).toEqual([400, attr, expect.stringMatching(detail)]);
  });
});
