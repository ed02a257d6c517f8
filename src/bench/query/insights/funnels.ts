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

/**
 * Two looks back: from a second step to the latest first one, and from a third to the latest second one that had a first.
 * A person counts where it got furthest, the first time it did.
 * @param read what else is read of an event, with a comma before it
 * @param value what of it is kept of a person, with a comma before it
 */
const funnel = (range: InsightRange, read = '', value = '', key = ''): FloorStatement => ({
  text: `
    select ${key} count(*), count(*) filter (where depth >= 2), count(*) filter (where depth = 3),
      avg(extract(epoch from second_at - first_at)::float8), avg(extract(epoch from third_at - second_at)::float8),
      percentile_cont(0.5) within group (order by extract(epoch from second_at - first_at)::float8),
      percentile_cont(0.5) within group (order by extract(epoch from third_at - second_at)::float8)
    from (
      select distinct on (person_id) * from (
        select person_id ${value}, at, step as depth,
          case when step = 3 then chain_first else first_at end as first_at,
          case step when 3 then chain_second when 2 then at end as second_at, case when step = 3 then at end as third_at
        from (
          select *, max(first_at) filter (where step = 2) over ${followed} as chain_first,
            max(at) filter (where step = 2) over ${followed} as chain_second
          from (
            select person_id ${value}, at, step,
              case when step = 1 then at when step = 2 and latest_first + interval '14 days' >= at then latest_first end as first_at
            from (
              select *, max(at) filter (where step = 1) over ${followed} as latest_first from (
                select person_id, timestamp as at, case event when $4 then 1 when $5 then 2 else 3 end as step ${read}
                from public.events
                where team_id = $1 and timestamp >= $2 and timestamp < $3 and event in ($4, $5, $6) and person_id is not null
              ) as steps
            ) as looked_back
          ) as seconds where first_at is not null or step = 3
        ) as thirds where step < 3 or chain_first + interval '14 days' >= at
      ) as attempts order by person_id, depth desc, at
    ) as persons`,
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
  floor: (range) => funnel(range),
  answerOf: ({ results }: QueryAnswer) => shownSteps(results as readonly Step[]),
  expectedOf: ([row = []]) => shownRow(row),
};

const byBrowser: Insight = {
  name: 'Funnel: three steps by browser, 30 days',
  query: (range) => ({
    ...request(range),
    breakdownFilter: { breakdown: '$browser', breakdown_type: 'event' },
  }),
  floor: (range) => {
    const { text, values } = funnel(
      range,
      `, first_value(coalesce(properties ->> '$browser', '')) over (
         partition by person_id order by coalesce(properties ->> '$browser', '') = '', timestamp) as browser`,
      ', browser',
      'browser,',
    );
    return { text: `${text} group by browser`, values };
  },
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
