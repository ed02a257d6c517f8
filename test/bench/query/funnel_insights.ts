import type { QueryOutput } from '../../../src/queries/query_kind.ts';
import {
  eventsOfPersons,
  lastDays,
  type FloorStatement,
  type Insight,
  type InsightRange,
} from './insight.ts';

const days = 30;
const events = ['$pageview', '$autocapture', 'report_viewed'] as const;
const followed = `(partition by person_id order by at, step rows between unbounded preceding and 1 preceding)`;

const request = (range: InsightRange) => ({
  kind: 'FunnelsQuery',
  series: events.map((event) => ({ kind: 'EventsNode', event })),
  dateRange: lastDays(range, days).dateRange,
});

/** Counts and conversion times of persons, from the depth that they reached. */
const measures = `count(*), count(*) filter (where depth >= 2), count(*) filter (where depth = 3),
  avg(extract(epoch from second_at - first_at)::float8), avg(extract(epoch from third_at - second_at)::float8),
  percentile_cont(0.5) within group (order by extract(epoch from second_at - first_at)::float8),
  percentile_cont(0.5) within group (order by extract(epoch from third_at - second_at)::float8)`;

/** The columns that a funnel needs. "offset 0" makes rows narrow before they are sorted. */
const steps = (more = ''): string => `
  select person_id, timestamp as at, case event when $4 then 1 when $5 then 2 else 3 end as step ${more}
  from ${eventsOfPersons}
  where timestamp >= $2 and timestamp < $3 and event in ($4, $5, $6) and person_id is not null
  offset 0`;

/** The events that matter: the first one of the first step, and events that can follow an earlier step. */
const isRelevant = `case step when 1 then latest_first is null when 2 then latest_first + interval '336 hours' >= at
  else latest_first is not null end`;

/**
 * Looks back twice in one sort order: from a second step to the latest first step, and from a third step to the latest
 * second step that has a first. A person counts at the deepest step, the first time that they reached it. The times of
 * the preceding steps never decrease, so the minimum belongs to the first time.
 */
const furthest = `
  select ${measures} from (
    select max(step) as depth,
      case max(step) when 3 then min(chain_first) when 2 then min(first_at) end as first_at,
      case max(step) when 3 then min(chain_second) when 2 then min(at) filter (where step = 2) end as second_at,
      min(at) filter (where step = 3) as third_at
    from (
      select person_id, at, step, first_at,
        case when step = 3 then max(first_at) over ${followed} end as chain_first,
        case when step = 3 then max(at) filter (where step = 2) over ${followed} end as chain_second
      from (
        select person_id, at, step, case when step = 2 then latest_first end as first_at from (
          select *, max(at) filter (where step = 1) over ${followed} as latest_first from (${steps()}) as steps
        ) as looked_back where ${isRelevant}
      ) as seconds
    ) as thirds where step < 3 or chain_first + interval '336 hours' >= at
    group by person_id
  ) as persons`;

/** The same by the browser of a person's first event, which is kept even if its step does not matter. */
const furthestByBrowser = `
  select browser, ${measures} from (
    select max(depth) as depth, coalesce(max(browser) filter (where at = browser_at), '') as browser,
      case max(depth) when 3 then min(chain_first) filter (where depth = 3) when 2 then min(first_at) end as first_at,
      case max(depth) when 3 then min(chain_second) filter (where depth = 3)
        when 2 then min(at) filter (where depth = 2) end as second_at,
      min(at) filter (where depth = 3) as third_at
    from (
      select *, case when step = 1 then 1 when first_at is not null then 2
        when chain_first + interval '336 hours' >= at then 3 end as depth
      from (
        select *, case when step = 3 then max(first_at) over ${followed} end as chain_first,
          case when step = 3 then max(at) filter (where first_at is not null) over ${followed} end as chain_second
        from (
          select person_id, at, step, browser, browser_at,
            case when step = 2 and latest_first + interval '336 hours' >= at then latest_first end as first_at
          from (
            select *, max(at) filter (where step = 1) over ${followed} as latest_first,
              min(at) filter (where browser <> '') over (partition by person_id) as browser_at
            from (${steps(`, coalesce(properties ->> '$browser', '') as browser`)}) as steps
          ) as looked_back where at = browser_at or ${isRelevant}
        ) as seconds
      ) as thirds
    ) as attempts group by person_id
  ) as persons where depth is not null group by browser`;

const floorOf =
  (text: string) =>
  (range: InsightRange): FloorStatement => ({
    text,
    values: [range.teamId, lastDays(range, days).from, lastDays(range, days).end, ...events],
  });

interface Step {
  readonly count: number;
  readonly average_conversion_time: number | null;
  readonly median_conversion_time: number | null;
  readonly breakdown_value?: readonly string[];
}

/** Counts, then times rounded to digits that do not depend on the order of summation. */
const normalized = (counts: readonly number[], times: readonly (number | null)[]): unknown => [
  ...counts,
  ...times.map((time) => (time === null ? null : Number(time.toPrecision(10)))),
];

const normalizedSteps = (steps: readonly Step[]): unknown =>
  normalized(
    steps.map(({ count }) => count),
    [
      ...steps.slice(1).map((step) => step.average_conversion_time),
      ...steps.slice(1).map((step) => step.median_conversion_time),
    ],
  );

const normalizedRow = (row: readonly (string | null)[]): unknown =>
  normalized(
    row.slice(0, 3).map(Number),
    row.slice(3).map((time) => (time === null ? null : Number(time))),
  );

const ordered: Insight = {
  name: 'Funnel: three steps in order, 30 days',
  query: request,
  floor: floorOf(furthest),
  actualOf: ({ results }: QueryOutput) => normalizedSteps(results as readonly Step[]),
  expectedOf: ([row = []]) => normalizedRow(row),
};

const byBrowser: Insight = {
  name: 'Funnel: three steps by browser, 30 days',
  query: (range) => ({
    ...request(range),
    breakdownFilter: { breakdown: '$browser', breakdown_type: 'event' },
  }),
  floor: floorOf(furthestByBrowser),
  actualOf: ({ results }: QueryOutput) =>
    Object.fromEntries(
      (results as readonly (readonly Step[])[]).map((steps) => [
        String(steps[0]?.breakdown_value),
        normalizedSteps(steps),
      ]),
    ),
  expectedOf: (rows) =>
    Object.fromEntries(
      rows.map(([browser, ...row]): [string, unknown] => [String(browser), normalizedRow(row)]),
    ),
};

/** Funnels of three steps. */
export const funnelInsights: readonly Insight[] = [ordered, byBrowser];
