import type { QueryOutput } from '../../../queries/query_kind.ts';
import { eventsOfPersons, startOf, lastDays, lineOf, type Insight } from '../insight.ts';

const days = 30;
const pageviews = { kind: 'EventsNode', event: '$pageview' };

interface Line {
  readonly data: readonly number[];
  readonly breakdown_value?: unknown;
}

const linesOf = ({ results }: QueryOutput): readonly Line[] => results as readonly Line[];
const dataOf = (output: QueryOutput): unknown => linesOf(output).map(({ data }) => data);

const byBrowser: Insight = {
  name: 'Trends: pageviews by browser, 30 days',
  query: (range) => ({
    kind: 'TrendsQuery',
    series: [pageviews],
    dateRange: lastDays(range, days).dateRange,
    breakdownFilter: { breakdown: '$browser', breakdown_type: 'event' },
  }),
  floor: (range) => ({
    text: `select coalesce(properties ->> '$browser', '') as browser, ${startOf('day')} as day, count(*)
      from public.events where team_id = $1 and event = '$pageview' and timestamp >= $2 and timestamp < $3 group by 1, 2`,
    values: [range.teamId, lastDays(range, days).from, lastDays(range, days).end],
  }),
  actualOf: (output) =>
    Object.fromEntries(linesOf(output).map(({ breakdown_value, data }) => [String(breakdown_value), data])),
  expectedOf: (rows, range) => {
    const browsers = [...new Set(rows.map(([browser]) => browser))];
    return Object.fromEntries<readonly number[]>(
      browsers.map((browser) => [
        String(browser),
        lineOf(
          lastDays(range, days).days,
          rows.filter(([name]) => name === browser).map(([, ...rest]) => rest),
        ),
      ]),
    );
  },
};

const dailyUsers: Insight = {
  name: 'Trends: unique users of pageviews by day, 30 days',
  query: (range) => ({
    kind: 'TrendsQuery',
    series: [{ ...pageviews, math: 'dau' }],
    dateRange: lastDays(range, days).dateRange,
  }),
  floor: (range) => ({
    text: `select day, count(*) from (
        select ${startOf('day')} as day, person_id from ${eventsOfPersons}
        where event = '$pageview' and timestamp >= $2 and timestamp < $3 and person_id is not null
        group by 1, 2
      ) as seen group by day`,
    values: [range.teamId, lastDays(range, days).from, lastDays(range, days).end],
  }),
  actualOf: dataOf,
  expectedOf: (rows, range) => [lineOf(lastDays(range, days).days, rows)],
};

const weeklyUsers: Insight = {
  name: 'Trends: weekly active users by day, 30 days',
  query: (range) => ({
    kind: 'TrendsQuery',
    series: [{ ...pageviews, math: 'weekly_active' }],
    dateRange: lastDays(range, days).dateRange,
  }),
  // A person is active from each of their days until seven days later or their next day. Equal spans are counted first,
  // then starts minus ends are summed up.
  floor: (range) => ({
    text: `with spans as (
        select day, least(day + 7, next_day) as end_day, count(*) as persons from (
          select day::date, lead(day::date) over (partition by person_id order by day) as next_day from (
            select ${startOf('day')} as day, person_id from ${eventsOfPersons}
            where event = '$pageview' and timestamp >= $2::timestamptz - interval '6 days' and timestamp < $3
              and person_id is not null
            group by 1, 2
          ) as seen
        ) as active group by 1, 2
      )
      select at, (sum(sum(change)) over (order by at))::bigint from (
        select day as at, persons as change from spans union all select end_day, -persons from spans
      ) as changes group by at`,
    values: [range.teamId, lastDays(range, days).from, lastDays(range, days).end],
  }),
  actualOf: dataOf,
  expectedOf: (rows, range) => [lineOf(lastDays(range, days).days, rows)],
};

export const trendsInsights: readonly Insight[] = [byBrowser, dailyUsers, weeklyUsers];
