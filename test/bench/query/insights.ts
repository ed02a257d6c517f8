import type { QueryOutput } from '../../../src/queries/query_kind.ts';
import { funnelInsights } from './funnel_insights.ts';
import {
  dayMs,
  eventsOfPersons,
  startOf,
  lastDays,
  lineOf,
  type Insight,
  type InsightRange,
} from './insight.ts';

const rowsOf = ({ results }: QueryOutput): readonly (readonly unknown[])[] =>
  results as readonly (readonly unknown[])[];
const parsed = (json: string | null | undefined): unknown => JSON.parse(json ?? 'null');

const before = ({ now }: InsightRange, days: number): Date => new Date(now.getTime() - days * dayMs);
const dialect = (query: string) => () => ({ kind: 'DialectQuery', query });
const time = (text: string | null | undefined): string =>
  new Date(text ?? '').toISOString().slice(0, 19) + 'Z';

const eventsByDay: Insight = {
  name: 'Dialect: events by day, 30 days',
  query: dialect(
    `SELECT toStartOfDay(timestamp) AS day, count() FROM events
     WHERE timestamp >= now() - INTERVAL 30 DAY GROUP BY day ORDER BY day`,
  ),
  floor: (range) => ({
    text: `select ${startOf('day')} as day, count(*) from public.events
      where team_id = $1 and timestamp >= $2 group by day order by day`,
    values: [range.teamId, before(range, 30)],
  }),
  actualOf: ({ results }) => results,
  expectedOf: (rows) => rows.map(([day, count]) => [time(day), Number(count)]),
};

const topPages: Insight = {
  name: 'Dialect: top pages, 7 days',
  query: dialect(
    `SELECT properties.$current_url AS url, count() AS views FROM events
     WHERE event = '$pageview' AND timestamp >= now() - INTERVAL 7 DAY
     GROUP BY url ORDER BY views DESC, url LIMIT 20`,
  ),
  floor: (range) => ({
    text: `select properties ->> '$current_url' as url, count(*) as views from public.events
      where team_id = $1 and event = '$pageview' and timestamp >= $2 group by url order by views desc, url limit 20`,
    values: [range.teamId, before(range, 7)],
  }),
  actualOf: ({ results }) => results,
  expectedOf: (rows) => rows.map(([url, views]) => [url, Number(views)]),
};

const usersByWeek: Insight = {
  name: 'Dialect: unique users by week, 12 weeks',
  query: dialect(
    `SELECT toStartOfWeek(timestamp, 1) AS week, count(DISTINCT person_id) AS users FROM events
     WHERE timestamp >= now() - INTERVAL 84 DAY GROUP BY week ORDER BY week`,
  ),
  // Counting distinct rows of a subquery needs no sort and can run in parallel.
  floor: (range) => ({
    text: `select week::date, count(person_id) from (
        select ${startOf('week')} as week, person_id from ${eventsOfPersons}
        where timestamp >= $2 group by 1, 2
      ) as seen group by week order by week`,
    values: [range.teamId, before(range, 84)],
  }),
  actualOf: ({ results }) => results,
  expectedOf: (rows) => rows.map(([week, users]) => [week, Number(users)]),
};

const trendDays = 30;
const pageviews = { kind: 'EventsNode', event: '$pageview' };

interface Line {
  readonly data: readonly number[];
  readonly breakdown_value?: unknown;
}

const linesOf = ({ results }: QueryOutput): readonly Line[] => results as readonly Line[];
const dataOf = (output: QueryOutput): unknown => linesOf(output).map(({ data }) => data);

const pageviewsByBrowser: Insight = {
  name: 'Trends: pageviews by browser, 30 days',
  query: (range) => ({
    kind: 'TrendsQuery',
    series: [pageviews],
    dateRange: lastDays(range, trendDays).dateRange,
    breakdownFilter: { breakdown: '$browser', breakdown_type: 'event' },
  }),
  floor: (range) => ({
    text: `select coalesce(properties ->> '$browser', '') as browser, ${startOf('day')} as day, count(*)
      from public.events where team_id = $1 and event = '$pageview' and timestamp >= $2 and timestamp < $3 group by 1, 2`,
    values: [range.teamId, lastDays(range, trendDays).from, lastDays(range, trendDays).end],
  }),
  actualOf: (output) =>
    Object.fromEntries(linesOf(output).map(({ breakdown_value, data }) => [String(breakdown_value), data])),
  expectedOf: (rows, range) => {
    const browsers = [...new Set(rows.map(([browser]) => browser))];
    return Object.fromEntries<readonly number[]>(
      browsers.map((browser) => [
        String(browser),
        lineOf(
          lastDays(range, trendDays).days,
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
    dateRange: lastDays(range, trendDays).dateRange,
  }),
  floor: (range) => ({
    text: `select day, count(*) from (
        select ${startOf('day')} as day, person_id from ${eventsOfPersons}
        where event = '$pageview' and timestamp >= $2 and timestamp < $3 and person_id is not null
        group by 1, 2
      ) as seen group by day`,
    values: [range.teamId, lastDays(range, trendDays).from, lastDays(range, trendDays).end],
  }),
  actualOf: dataOf,
  expectedOf: (rows, range) => [lineOf(lastDays(range, trendDays).days, rows)],
};

const weeklyUsers: Insight = {
  name: 'Trends: weekly active users by day, 30 days',
  query: (range) => ({
    kind: 'TrendsQuery',
    series: [{ ...pageviews, math: 'weekly_active' }],
    dateRange: lastDays(range, trendDays).dateRange,
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
    values: [range.teamId, lastDays(range, trendDays).from, lastDays(range, trendDays).end],
  }),
  actualOf: dataOf,
  expectedOf: (rows, range) => [lineOf(lastDays(range, trendDays).days, rows)],
};

/** The first days of the last whole month and of the next one. */
const monthOf = ({ now }: InsightRange): readonly [Date, Date] => [
  new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - 1)),
  new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth())),
];

interface Person {
  readonly id: string;
  readonly properties: unknown;
  readonly distinct_ids: readonly string[];
}

const distinctIds = `(select coalesce(json_agg(distinct_id order by distinct_id collate "C"), '[]') from public.person_distinct_ids as m
  where m.team_id = $1 and m.person_id = p.id and not m.is_deleted)`;

const actorsOfMonth: Insight = {
  name: 'Actors: who the unique users of a month were',
  query: (range) => ({
    kind: 'ActorsQuery',
    select: ['person', 'event_count'],
    orderBy: ['event_count DESC', 'id'],
    source: {
      kind: 'InsightActorsQuery',
      source: {
        kind: 'TrendsQuery',
        series: [{ kind: 'EventsNode', event: '$pageview', math: 'dau' }],
        dateRange: lastDays(range, 90).dateRange,
        interval: 'month',
      },
      day: monthOf(range)[0].toISOString().slice(0, 10),
      series: 0,
    },
  }),
  floor: (range) => ({
    text: `select p.id, p.properties, ${distinctIds}, a.events from (
        select person_id, count(*) as events from ${eventsOfPersons}
        where event = '$pageview' and timestamp >= $2 and timestamp < $3 and person_id is not null
        group by person_id order by events desc, person_id limit 100
      ) as a join public.persons as p on p.team_id = $1 and p.id = a.person_id and not p.is_deleted
      order by a.events desc, p.id`,
    values: [range.teamId, ...monthOf(range)],
  }),
  actualOf: (output) =>
    rowsOf(output).map(([person, events]) => {
      const { id, properties, distinct_ids } = person as Person;
      return [id, properties, distinct_ids, events];
    }),
  expectedOf: (rows) =>
    rows.map(([id, properties, distinct_ids, events]) => [
      id,
      parsed(properties),
      parsed(distinct_ids),
      Number(events),
    ]),
};

const foundEvents: Insight = {
  name: 'Events: 7 days searched by properties, with their persons',
  query: (range) => ({
    kind: 'EventsQuery',
    select: ['*', 'person', 'timestamp'],
    after: new Date(range.now.getTime() - 7 * dayMs).toISOString(),
    properties: [
      { type: 'event', key: '$browser', operator: 'exact', value: ['Edge'] },
      { type: 'event', key: '$browser_version', operator: 'exact', value: ['117'] },
      { type: 'event', key: '$current_url', operator: 'icontains', value: 'checkout' },
    ],
    limit: 100,
  }),
  floor: (range) => ({
    text: `select e.uuid, e.event, e.properties, e.distinct_id, p.id, p.properties from (
        select * from public.events where team_id = $1 and timestamp > $2 and timestamp < $3
          and properties ->> '$browser' = 'Edge' and properties ->> '$browser_version' = '117'
          and properties ->> '$current_url' ilike '%checkout%'
        order by timestamp desc, uuid limit 100
      ) as e
      left join public.person_distinct_ids as m on m.team_id = $1 and m.distinct_id = e.distinct_id and not m.is_deleted
      left join public.persons as p on p.team_id = $1 and p.id = m.person_id and not p.is_deleted
      order by e.timestamp desc, e.uuid`,
    values: [range.teamId, new Date(range.now.getTime() - 7 * dayMs), new Date(range.now.getTime() + 5_000)],
  }),
  actualOf: (output) =>
    rowsOf(output).map(([event, person]) => {
      const { uuid, event: name, properties, distinct_id } = event as Readonly<Record<string, unknown>>;
      const { uuid: id, properties: own } = person as Readonly<Record<string, unknown>>;
      return [uuid, name, properties, distinct_id, id, own];
    }),
  expectedOf: (rows) =>
    rows.map(([uuid, name, properties, distinct_id, id, own]) => [
      uuid,
      name,
      parsed(properties),
      distinct_id,
      id,
      parsed(own),
    ]),
};

const searchedPersons: Insight = {
  name: 'Persons: a search in names, addresses and ids',
  query: () => ({ kind: 'ActorsQuery', search: 'user-1234' }),
  floor: ({ teamId }) => ({
    text: `select p.id, p.properties, ${distinctIds} from public.persons as p
      where p.team_id = $1 and not p.is_deleted and (
        p.properties ->> 'email' ilike $2 or p.properties ->> 'name' ilike $2 or p.id::text ilike $2
        or p.id in (select m.person_id from public.person_distinct_ids as m
          where m.team_id = $1 and m.distinct_id ilike $2 and not m.is_deleted)
      ) order by p.id limit 100`,
    values: [teamId, '%user-1234%'],
  }),
  actualOf: (output) =>
    rowsOf(output).map(([person]) => {
      const { id, properties, distinct_ids } = person as Person;
      return [id, properties, distinct_ids];
    }),
  expectedOf: (rows) =>
    rows.map(([id, properties, distinct_ids]) => [id, parsed(properties), parsed(distinct_ids)]),
};

/** The measured insights, which `src/queries/README.md` lists. */
export const insights: readonly Insight[] = [
  ...[eventsByDay, topPages, usersByWeek],
  ...[pageviewsByBrowser, dailyUsers, weeklyUsers],
  ...funnelInsights,
  ...[actorsOfMonth, foundEvents, searchedPersons],
];
