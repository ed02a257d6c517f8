import {
  actorsOf,
  before,
  dataByBreakdown,
  dataOf,
  dayBefore,
  dialect,
  eventsOfPersons,
  type Insight,
  type InsightRange,
  lastDays,
  lineOf,
  linesByValue,
  parsed,
  rowsOf,
  startOf,
  time,
} from './insights.ts';

const pageviews = { kind: 'EventsNode', event: '$pageview' };

/** A value of a statement, as exportd returns it: null, or a number. */
const numberOf = (text: string | null | undefined): number | null =>
  text === null || text === undefined ? null : Number(text);

const pageviewsByDay: Insight = {
  name: 'Trends: pageviews by day, 30 days',
  query: (range) => ({ kind: 'TrendsQuery', series: [pageviews], dateRange: lastDays(range, 30).dateRange }),
  floor: (range) => ({
    text: `select ${startOf('day')} as day, count(*) from public.events
      where team_id = $1 and event = '$pageview' and timestamp >= $2 and timestamp < $3 group by 1`,
    values: [range.teamId, lastDays(range, 30).from, lastDays(range, 30).end],
  }),
  actualOf: dataOf,
  expectedOf: (rows, range) => [lineOf(lastDays(range, 30).days, rows)],
};

/** Days since a Sunday some weeks ago, with which the weeks of a project start. */
const daysOfWeeks = (range: InsightRange): number => 12 * 7 + dayBefore(range, 0).getUTCDay() + 1;

const sumOfPersons: Insight = {
  name: 'Trends: sum of a property over persons with a property, 12 weeks',
  query: (range) => ({
    kind: 'TrendsQuery',
    series: [
      {
        ...pageviews,
        math: 'sum',
        math_property: 'load_ms',
        properties: [{ type: 'person', key: 'plan', operator: 'exact', value: ['team'] }],
      },
    ],
    interval: 'week',
    dateRange: lastDays(range, daysOfWeeks(range)).dateRange,
  }),
  floor: (range) => ({
    text: `select date_bin('7 days', timestamp, '2001-01-07T00:00:00Z') as week,
        sum((events.properties ->> 'load_ms')::float8)
      from ${eventsOfPersons} join public.persons as p
        on p.team_id = $1 and p.id = events.person_id and not p.is_deleted and p.properties ->> 'plan' = 'team'
      where event = '$pageview' and timestamp >= $2 and timestamp < $3 group by 1 order by 1`,
    values: [range.teamId, lastDays(range, daysOfWeeks(range)).from, lastDays(range, daysOfWeeks(range)).end],
  }),
  actualOf: dataOf,
  expectedOf: (rows, range) => {
    const { days } = lastDays(range, daysOfWeeks(range));
    return [
      lineOf(
        days.filter((_, index) => index % 7 === 0),
        rows,
      ),
    ];
  },
};

const pathOfUrl = `substring(properties ->> '$current_url' from '^[a-z][a-z0-9+.-]*://[^/?#]*([^?#]*)')`;

const byEntryPath: Insight = {
  name: 'Trends: pageviews by entry path of the session, 7 days',
  query: (range) => ({
    kind: 'TrendsQuery',
    series: [pageviews],
    dateRange: lastDays(range, 7).dateRange,
    breakdownFilter: { breakdown: '$entry_pathname', breakdown_type: 'session' },
  }),
  floor: (range) => ({
    text: `with counted as (
        select properties ->> '$session_id' as session, ${startOf('day')} as day, count(*) as events from public.events
        where team_id = $1 and event = '$pageview' and timestamp >= $2 and timestamp < $3 group by 1, 2
      ), entries as (
        select distinct on (1) properties ->> '$session_id' as session, ${pathOfUrl} as path from public.events
        where team_id = $1 and properties ->> '$session_id' in (select session from counted) and ${pathOfUrl} is not null
        order by 1, timestamp
      )
      select coalesce(path, ''), day, sum(events) from counted left join entries using (session) group by 1, 2`,
    values: [range.teamId, lastDays(range, 7).from, lastDays(range, 7).end],
  }),
  actualOf: dataByBreakdown,
  expectedOf: (rows, range) => linesByValue(rows, lastDays(range, 7).days),
};

const lastEvents: Insight = {
  name: 'Events: the last 100 with two properties, 30 days',
  query: (range) => ({
    kind: 'EventsQuery',
    select: ['*', 'timestamp'],
    event: '$pageview',
    after: before(range, 30).toISOString(),
    properties: [
      { type: 'event', key: '$browser', operator: 'exact', value: ['Safari'] },
      { type: 'event', key: '$browser_version', operator: 'exact', value: ['117'] },
    ],
    limit: 100,
  }),
  floor: (range) => ({
    text: `select uuid, event, properties, distinct_id from public.events
      where team_id = $1 and event = '$pageview' and timestamp > $2 and timestamp < $3 and properties ->> '$browser' = 'Safari'
        and properties ->> '$browser_version' = '117' order by timestamp desc, uuid limit 100`,
    values: [range.teamId, before(range, 30), new Date(range.now.getTime() + 5_000)],
  }),
  actualOf: (output) =>
    rowsOf(output).map(([event]) => {
      const { uuid, event: name, properties, distinct_id } = event as Readonly<Record<string, unknown>>;
      return [uuid, name, properties, distinct_id];
    }),
  expectedOf: (rows) =>
    rows.map(([uuid, event, properties, distinctId]) => [uuid, event, parsed(properties), distinctId]),
};

const personsByEvent: Insight = {
  name: 'Dialect: events and unique users by event, all time',
  query: dialect(
    'SELECT event, count() AS n, uniq(person_id) FROM events GROUP BY event ORDER BY n DESC, event',
  ),
  floor: ({ teamId }) => ({
    text: `select event, sum(events) as n, count(person_id) from (
        select event, person_id, count(*) as events from ${eventsOfPersons} group by 1, 2
      ) as seen group by event order by n desc, event`,
    values: [teamId],
  }),
  actualOf: ({ results }) => results,
  expectedOf: (rows) => rows.map(([event, ...numbers]) => [event, ...numbers.map(numberOf)]),
};

const pagesWithUsers: Insight = {
  name: 'Dialect: top pages with unique users and a quantile, 30 days',
  query: dialect(
    `SELECT properties.$current_url AS url, count() AS views, uniq(person_id), quantile(0.9)(toFloat(properties.load_ms))
     FROM events WHERE event = '$pageview' AND timestamp >= now() - INTERVAL 30 DAY
     GROUP BY url ORDER BY views DESC, url LIMIT 20`,
  ),
  floor: (range) => ({
    text: `select properties ->> '$current_url' as url, count(*) as views, count(distinct person_id),
        percentile_cont(0.9) within group (order by (properties ->> 'load_ms')::float8)
      from ${eventsOfPersons} where event = '$pageview' and timestamp >= $2
      group by url order by views desc, url limit 20`,
    values: [range.teamId, before(range, 30)],
  }),
  actualOf: (output) =>
    rowsOf(output).map(([url, views, users, quantile]) => [url, views, users, Math.round(Number(quantile))]),
  expectedOf: (rows) =>
    rows.map(([url, views, users, quantile]) => [
      url,
      numberOf(views),
      numberOf(users),
      Math.round(Number(quantile)),
    ]),
};

const sessionsByDay: Insight = {
  name: 'Dialect: sessions by day, 30 days',
  query: dialect(
    `SELECT toStartOfDay($start_timestamp) AS day, count(), sum($pageview_count) FROM sessions
     WHERE $start_timestamp >= now() - INTERVAL 30 DAY GROUP BY day ORDER BY day`,
  ),
  floor: (range) => ({
    text: `select date_bin('1 day', start, '2001-01-01T00:00:00Z') as day, count(*), sum(pageviews) from (
        select min(timestamp) as start, count(*) filter (where event = '$pageview') as pageviews from public.events
        where team_id = $1 and properties ->> '$session_id' <> '' and properties ->> '$session_id' in (
          select properties ->> '$session_id' from public.events where team_id = $1 and timestamp >= $2)
        group by properties ->> '$session_id' having min(timestamp) >= $2
      ) as sessions group by day order by day`,
    values: [range.teamId, before(range, 30)],
  }),
  actualOf: ({ results }) => results,
  expectedOf: (rows) => rows.map(([day, ...numbers]) => [time(day), ...numbers.map(numberOf)]),
};

const byPlan: Insight = {
  name: 'Dialect: events by a property of the person, 30 days',
  query: dialect(
    `SELECT person.properties.plan AS plan, count() FROM events
     WHERE timestamp >= now() - INTERVAL 30 DAY GROUP BY plan ORDER BY plan`,
  ),
  floor: (range) => ({
    text: `select p.properties ->> 'plan' as plan, count(*) from ${eventsOfPersons} left join public.persons as p
        on p.team_id = $1 and p.id = events.person_id and not p.is_deleted
      where timestamp >= $2 group by plan order by plan`,
    values: [range.teamId, before(range, 30)],
  }),
  actualOf: ({ results }) => results,
  expectedOf: (rows) => rows.map(([plan, events]) => [plan, numberOf(events)]),
};

const previousReports: Insight = {
  name: 'Dialect: lag() over the reports of each person, 30 days',
  query: dialect(
    `SELECT count(), max(previous) FROM (
       SELECT lag(timestamp) OVER (PARTITION BY person_id ORDER BY timestamp) AS previous FROM events
       WHERE event = 'report_viewed' AND timestamp >= now() - INTERVAL 30 DAY
     ) WHERE previous IS NOT NULL`,
  ),
  floor: (range) => ({
    text: `select count(previous), max(previous) from (
        select lag(timestamp) over (partition by person_id order by timestamp) as previous from ${eventsOfPersons}
        where event = 'report_viewed' and timestamp >= $2
      ) as reports`,
    values: [range.teamId, before(range, 30)],
  }),
  actualOf: (output) => rowsOf(output).map(([count, latest]) => [count, time(latest as string)]),
  expectedOf: (rows) => rows.map(([count, latest]) => [numberOf(count), time(latest)]),
};

const retention: Insight = {
  name: 'Dialect: weekly retention by CTEs, 12 weeks',
  query: dialect(
    `WITH seen AS (
       SELECT DISTINCT person_id, toStartOfWeek(timestamp, 1) AS week FROM events
       WHERE event = '$pageview' AND timestamp >= now() - INTERVAL 84 DAY
     ), cohorts AS (SELECT person_id, min(week) AS first FROM seen GROUP BY person_id)
     SELECT cohorts.first AS cohort, dateDiff('week', cohorts.first, seen.week) AS weeks, count() FROM seen
     JOIN cohorts ON cohorts.person_id = seen.person_id GROUP BY cohort, weeks ORDER BY cohort, weeks LIMIT 1000`,
  ),
  floor: (range) => ({
    text: `with seen as (
        select distinct person_id, ${startOf('week')}::date as week from ${eventsOfPersons}
        where event = '$pageview' and timestamp >= $2
      ), cohorts as (select person_id, min(week) as first from seen group by person_id)
      select first, (week - first) / 7 as weeks, count(*) from seen join cohorts using (person_id)
      group by 1, 2 order by 1, 2`,
    values: [range.teamId, before(range, 84)],
  }),
  actualOf: ({ results }) => results,
  expectedOf: (rows) => rows.map(([cohort, ...numbers]) => [cohort, ...numbers.map(numberOf)]),
};

const sessionOf = (event: string): string =>
  `(select count(*) filter (where s.event = '$pageview') from public.events as s
    where s.team_id = $1 and s.properties ->> '$session_id' = ${event}.properties ->> '$session_id')`;

const reportsBySession: Insight = {
  name: 'Dialect: reports by the length of the session, 30 days',
  query: dialect(
    `SELECT session.$pageview_count AS pageviews, count() FROM events
     WHERE event = 'report_viewed' AND timestamp >= now() - INTERVAL 30 DAY GROUP BY pageviews ORDER BY pageviews`,
  ),
  floor: (range) => ({
    text: `with reports as (
        select properties ->> '$session_id' as session, count(*) as reports from public.events
        where team_id = $1 and event = 'report_viewed' and timestamp >= $2 group by 1
      ), lengths as (
        select properties ->> '$session_id' as session, count(*) filter (where event = '$pageview') as pageviews
        from public.events where team_id = $1 and properties ->> '$session_id' in (select session from reports) group by 1
      )
      select pageviews, sum(reports) from reports join lengths using (session) group by 1 order by 1`,
    values: [range.teamId, before(range, 30)],
  }),
  actualOf: ({ results }) => results,
  expectedOf: (rows) => rows.map((row) => row.map(numberOf)),
};

const lastWithPersons: Insight = {
  name: 'Dialect: the last 100 events with a property of the person',
  query: dialect(
    'SELECT event, timestamp, person.properties.email FROM events ORDER BY timestamp DESC LIMIT 100',
  ),
  floor: ({ teamId }) => ({
    text: `select e.event, e.timestamp, p.properties ->> 'email' from (
        select * from public.events where team_id = $1 order by timestamp desc limit 100
      ) as e
      left join public.person_distinct_ids as m on m.team_id = $1 and m.distinct_id = e.distinct_id and not m.is_deleted
      left join public.persons as p on p.team_id = $1 and p.id = coalesce(m.person_id, e.person_id) and not p.is_deleted
      order by e.timestamp desc`,
    values: [teamId],
  }),
  actualOf: (output) => rowsOf(output).map(([event, at, email]) => [event, time(at as string), email]),
  expectedOf: (rows) => rows.map(([event, at, email]) => [event, time(at), email]),
};

const eventsOfAddress: Insight = {
  name: 'Dialect: the events of a person by a property',
  query: dialect(
    `SELECT event, timestamp FROM events WHERE person.properties.email = 'user-1234@example.com' ORDER BY timestamp DESC`,
  ),
  floor: ({ teamId }) => ({
    text: `select event, timestamp from public.events where team_id = $1 and distinct_id in (
        select m.distinct_id from public.person_distinct_ids as m
        join public.persons as p on p.team_id = $1 and p.id = m.person_id and not p.is_deleted
        where m.team_id = $1 and not m.is_deleted and p.properties ->> 'email' = 'user-1234@example.com'
      ) order by timestamp desc`,
    values: [teamId],
  }),
  actualOf: (output) => rowsOf(output).map(([event, at]) => [event, time(at as string)]),
  expectedOf: (rows) => rows.map(([event, at]) => [event, time(at)]),
};

/** The last events with the length of their sessions. */
const lastWithSessions = (period: string, boundsOf: (range: InsightRange) => readonly Date[]): Insight => ({
  name: `Dialect: the last 10 events of ${period} with their sessions`,
  query: (range) => {
    const [from, to] = boundsOf(range).map((bound) => bound.toISOString().slice(0, 10));
    const where =
      from === undefined
        ? ''
        : `WHERE timestamp >= toDateTime('${from}') AND timestamp < toDateTime('${to ?? ''}')`;
    return dialect(
      `SELECT event, timestamp, session.$pageview_count FROM events ${where} ORDER BY timestamp DESC LIMIT 10`,
    )();
  },
  floor: (range) => ({
    text: `select event, timestamp, ${sessionOf('e')} from (
        select * from public.events where team_id = $1 ${boundsOf(range).length > 0 ? 'and timestamp >= $2 and timestamp < $3' : ''}
        order by timestamp desc limit 10
      ) as e order by timestamp desc`,
    values: [range.teamId, ...boundsOf(range)],
  }),
  actualOf: (output) => rowsOf(output).map(([event, at, views]) => [event, time(at as string), views]),
  expectedOf: (rows) => rows.map(([event, at, views]) => [event, time(at), numberOf(views)]),
});

/** A day that has ended. */
const dayOf = (range: InsightRange): readonly [Date, Date] => [dayBefore(range, 3), dayBefore(range, 2)];

/** What analysts ask besides the insights; some of it needs all events. */
export const analyses: readonly Insight[] = [
  pageviewsByDay,
  sumOfPersons,
  byEntryPath,
  lastEvents,
  actorsOf('day', dayOf),
  personsByEvent,
  pagesWithUsers,
  sessionsByDay,
  byPlan,
  previousReports,
  retention,
  reportsBySession,
  lastWithPersons,
  eventsOfAddress,
  lastWithSessions('a day', dayOf),
  lastWithSessions('all time', () => []),
];
