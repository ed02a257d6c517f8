import type { QueryAnswer } from '../../../queries/query_kind.ts';
import { lastDays, lineOf, type Insight } from '../insight.ts';

const days = 30;
const pageviews = { kind: 'EventsNode', event: '$pageview' };

interface Line {
  readonly data: readonly number[];
  readonly breakdown_value?: unknown;
}

const linesOf = ({ results }: QueryAnswer): readonly Line[] => results as readonly Line[];
const dataOf = (answer: QueryAnswer): unknown => linesOf(answer).map(({ data }) => data);

const byBrowser: Insight = {
  name: 'Trends: pageviews by browser, 30 days',
  query: (range) => ({
    kind: 'TrendsQuery',
    series: [pageviews],
    dateRange: lastDays(range, days).dateRange,
    breakdownFilter: { breakdown: '$browser', breakdown_type: 'event' },
  }),
  floor: (range) => ({
    text: `select coalesce(properties ->> '$browser', '') as browser, date_trunc('day', timestamp)::date as day, count(*)
      from public.events where team_id = $1 and event = '$pageview' and timestamp >= $2 and timestamp < $3 group by 1, 2`,
    values: [range.teamId, lastDays(range, days).from, lastDays(range, days).end],
  }),
  answerOf: (answer) =>
    Object.fromEntries(linesOf(answer).map(({ breakdown_value, data }) => [String(breakdown_value), data])),
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
    text: `select day, count(person_id) from (
        select date_trunc('day', timestamp)::date as day, person_id from public.events
        where team_id = $1 and event = '$pageview' and timestamp >= $2 and timestamp < $3 group by 1, 2
      ) as seen group by day`,
    values: [range.teamId, lastDays(range, days).from, lastDays(range, days).end],
  }),
  answerOf: dataOf,
  expectedOf: (rows, range) => [lineOf(lastDays(range, days).days, rows)],
};

const weeklyUsers: Insight = {
  name: 'Trends: weekly active users by day, 30 days',
  query: (range) => ({
    kind: 'TrendsQuery',
    series: [{ ...pageviews, math: 'weekly_active' }],
    dateRange: lastDays(range, days).dateRange,
  }),
  // A day of a person counts for itself and the six days that follow, each of them once.
  floor: (range) => ({
    text: `select counted::date, count(*) from (
        select day, person_id, lead(day) over (partition by person_id order by day) as next_day from (
          select date_trunc('day', timestamp)::date as day, person_id from public.events
          where team_id = $1 and event = '$pageview' and timestamp >= $2::timestamptz - interval '6 days' and timestamp < $3
            and person_id is not null
          group by 1, 2
        ) as seen
      ) as days, generate_series(greatest(day, $2::timestamptz::date)::timestamp,
        least(day + 6, next_day - 1, $3::timestamptz::date - 1)::timestamp, interval '1 day') as counted
      group by 1`,
    values: [range.teamId, lastDays(range, days).from, lastDays(range, days).end],
  }),
  answerOf: dataOf,
  expectedOf: (rows, range) => [lineOf(lastDays(range, days).days, rows)],
};

export const trendsInsights: readonly Insight[] = [byBrowser, dailyUsers, weeklyUsers];
