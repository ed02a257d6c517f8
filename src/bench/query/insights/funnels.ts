import type { QueryAnswer } from '../../../queries/query_kind.ts';
import { lastDays, type FloorStatement, type Insight, type InsightRange } from '../insight.ts';

const days = 30;
const events = ['$pageview', '$autocapture', 'report_viewed'] as const;
const followed = `(partition by person_id order by at, step rows between unbounded preceding and 1 preceding)`;

const request = (range: InsightRange) => ({
  kind: 'FunnelsQuery',
  series: events.map((event) => ({ kind: 'EventsNode', event })),
  dateRange: lastDays(range, days).dateRange,
});

/** Counts and times of persons, by how deep they got and when. */
const measures = `count(*), count(*) filter (where depth >= 2), count(*) filter (where depth = 3),
  avg(extract(epoch from second_at - first_at)::float8), avg(extract(epoch from third_at - second_at)::float8),
  percentile_cont(0.5) within group (order by extract(epoch from second_at - first_at)::float8),
  percentile_cont(0.5) within group (order by extract(epoch from third_at - second_at)::float8)`;

/** Of each event what a funnel needs; the fence makes rows narrow before they are sorted. */
const steps = (more = ''): string => `
  select person_id, timestamp as at, case event when $4 then 1 when $5 then 2 else 3 end as step ${more}
  from public.events
  where team_id = $1 and timestamp >= $2 and timestamp < $3 and event in ($4, $5, $6) and person_id is not null
  offset 0`;

/** Which events are looked at again: the first one of the first step, and what may go on from a step before it. */
const goesOn = `case step when 1 then latest_first is null when 2 then latest_first + interval '336 hours' >= at
  else latest_first is not null end`;

/**
 * Two looks back in the order of one sort: from a second step to the latest first one, and from a third to the latest
 * second one that had a first. A person counts where it got furthest, the first time it did; times of what is looked back
 * on never fall, so that the smallest are those of the first time.
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
        ) as looked_back where ${goesOn}
      ) as seconds
    ) as thirds where step < 3 or chain_first + interval '336 hours' >= at
    group by person_id
  ) as persons`;

/** The same with the first browser that any of a person's events has: that event stays, whatever its step is good for. */
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
          ) as looked_back where at = browser_at or ${goesOn}
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

/** Counts, then times with as many digits as do not depend on the order in which they are added. */
const shown = (counts: readonly number[], times: readonly (number | null)[]): unknown => [
  ...counts,
  ...times.map((time) => (time === null ? null : Number(time.toPrecision(10)))),
];

const shownSteps = (steps: readonly Step[]): unknown =>
  shown(
    steps.map(({ count }) => count),
    [
      ...steps.slice(1).map((step) => step.average_conversion_time),
      ...steps.slice(1).map((step) => step.median_conversion_time),
    ],
  );

const shownRow = (row: readonly (string | null)[]): unknown =>
  shown(
    row.slice(0, 3).map(Number),
    row.slice(3).map((time) => (time === null ? null : Number(time))),
  );

const ordered: Insight = {
  name: 'Funnel: three steps in order, 30 days',
  query: request,
  floor: floorOf(furthest),
  answerOf: ({ results }: QueryAnswer) => shownSteps(results as readonly Step[]),
  expectedOf: ([row = []]) => shownRow(row),
};

const byBrowser: Insight = {
  name: 'Funnel: three steps by browser, 30 days',
  query: (range) => ({
    ...request(range),
    breakdownFilter: { breakdown: '$browser', breakdown_type: 'event' },
  }),
  floor: floorOf(furthestByBrowser),
  answerOf: ({ results }: QueryAnswer) =>
    Object.fromEntries(
      (results as readonly (readonly Step[])[]).map((steps) => [
        String(steps[0]?.breakdown_value),
        shownSteps(steps),
      ]),
    ),
  expectedOf: (rows) =>
    Object.fromEntries(rows.map(([browser, ...row]): [string, unknown] => [String(browser), shownRow(row)])),
};

export const funnelInsights: readonly Insight[] = [ordered, byBrowser];
