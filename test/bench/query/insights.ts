import type { QueryOutput } from '../../../src/queries/query_kind.ts';

/** Project and time of an insight. */
export interface InsightRange {
  readonly teamId: number;
  /** The current time for exportd; the newest event is slightly older. */
  readonly now: Date;
}

/** A hand-written statement with its parameters. */
interface FloorStatement {
  readonly text: string;
  readonly values: readonly unknown[];
}

/** A typical insight, as a request and as the best SQL that we know for the same result. */
export interface Insight {
  readonly name: string;
  /** The field `query` of the request. */
  query(range: InsightRange): Readonly<Record<string, unknown>>;
  floor(range: InsightRange): FloorStatement;
  /** The part of exportd's result that the statement returns too, as JSON. */
  actualOf(output: QueryOutput): unknown;
  /** The same from the rows of the statement, whose values are text. */
  expectedOf(rows: readonly (readonly (string | null)[])[], range: InsightRange): unknown;
}

/** Milliseconds of a day. */
const dayMs = 86_400_000;

/** The start of a day in UTC, some days before now. */
export const dayBefore = ({ now }: InsightRange, days: number): Date =>
  new Date(Math.floor(now.getTime() / dayMs) * dayMs - days * dayMs);

/** The last days including today, as fields of a request and as bounds of a statement. */
export function lastDays(
  range: InsightRange,
  days: number,
): {
  readonly dateRange: { readonly date_from: string; readonly date_to: string };
  readonly from: Date;
  /** Exclusive. */
  readonly end: Date;
  /** `YYYY-MM-DD` of each. */
  readonly days: readonly string[];
} {
  const dayOf = (date: Date): string => date.toISOString().slice(0, 10);
  const all = Array.from({ length: days }, (_, index) => dayOf(dayBefore(range, days - 1 - index)));
  const from = dayBefore(range, days - 1);
  return {
    dateRange: { date_from: dayOf(from), date_to: dayOf(dayBefore(range, 0)) },
    from,
    end: dayBefore(range, -1),
    days: all,
  };
}

/**
 * SQL for the start of an event's day or week in UTC: a division, which is faster than date_trunc with a time zone.
 */
export const startOf = (unit: 'day' | 'week'): string =>
  `date_bin('${unit === 'day' ? 1 : 7} days', timestamp, '2001-01-01T00:00:00Z')`;

/** SQL for the events of the project `$1` with their merged persons. */
export const eventsOfPersons = `(
    select event, timestamp, properties, coalesce(mapping.person_id, stored.person_id) as person_id
    from public.events as stored left join public.person_distinct_ids as mapping
      on mapping.team_id = $1 and mapping.distinct_id = stored.distinct_id and not mapping.is_deleted
    where stored.team_id = $1
  ) as events`;

/** Counts by day as a series over all days. */
export function lineOf(
  days: readonly string[],
  rows: readonly (readonly (string | null)[])[],
): readonly number[] {
  const byDay = new Map(rows.map(([day, count]) => [day?.slice(0, 10), Number(count)]));
  return days.map((day) => byDay.get(day) ?? 0);
}

export const rowsOf = ({ results }: QueryOutput): readonly (readonly unknown[])[] =>
  results as readonly (readonly unknown[])[];
export const parsed = (json: string | null | undefined): unknown => JSON.parse(json ?? 'null');

export const before = ({ now }: InsightRange, days: number): Date => new Date(now.getTime() - days * dayMs);
export const dialect = (query: string) => () => ({ kind: 'DialectQuery', query });
export const time = (text: string | null | undefined): string =>
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

/** A line of a trend. */
interface Line {
  readonly data: readonly number[];
  readonly breakdown_value?: unknown;
}

const linesOf = ({ results }: QueryOutput): readonly Line[] => results as readonly Line[];
export const dataOf = (output: QueryOutput): unknown => linesOf(output).map(({ data }) => data);

/** Lines of a breakdown by their values. */
export const dataByBreakdown = (output: QueryOutput): unknown =>
  Object.fromEntries(linesOf(output).map(({ breakdown_value, data }) => [String(breakdown_value), data]));

/** The same from rows of value, day and count. */
export function linesByValue(
  rows: readonly (readonly (string | null)[])[],
  days: readonly string[],
): Readonly<Record<string, readonly number[]>> {
  const values = [...new Set(rows.map(([value]) => value))];
  return Object.fromEntries(
    values.map((value) => [
      String(value),
      lineOf(
        days,
        rows.filter(([one]) => one === value).map(([, ...rest]) => rest),
      ),
    ]),
  );
}

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
  actualOf: dataByBreakdown,
  expectedOf: (rows, range) => linesByValue(rows, lastDays(range, trendDays).days),
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

export const distinctIds = `(select coalesce(json_agg(distinct_id order by distinct_id collate "C"), '[]') from public.person_distinct_ids as m
  where m.team_id = $1 and m.person_id = p.id and not m.is_deleted)`;

/** Who the unique users of a period were. */
export const actorsOf = (
  interval: 'day' | 'month',
  boundsOf: (range: InsightRange) => readonly [Date, Date],
): Insight => ({
  name: `Actors: who the unique users of a ${interval} were`,
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
        interval,
      },
      day: boundsOf(range)[0].toISOString().slice(0, 10),
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
    values: [range.teamId, ...boundsOf(range)],
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
});

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

const funnelDays = 30;
const funnelEvents = ['$pageview', '$autocapture', 'report_viewed'] as const;
const followed = `(partition by person_id order by at, step rows between unbounded preceding and 1 preceding)`;

const funnelRequest = (range: InsightRange) => ({
  kind: 'FunnelsQuery',
  series: funnelEvents.map((event) => ({ kind: 'EventsNode', event })),
  dateRange: lastDays(range, funnelDays).dateRange,
});

/** Counts and conversion times of persons, from the depth that they reached. */
const measures = `count(*), count(*) filter (where depth >= 2), count(*) filter (where depth = 3),
  avg(extract(epoch from second_at - first_at)::float8), avg(extract(epoch from third_at - second_at)::float8),
  percentile_cont(0.5) within group (order by extract(epoch from second_at - first_at)::float8),
  percentile_cont(0.5) within group (order by extract(epoch from third_at - second_at)::float8)`;

/** The columns that a funnel needs. "offset 0" makes rows narrow before they are sorted. */
const funnelSteps = (more = ''): string => `
  select person_id, timestamp as at, case event when $4 then 1 when $5 then 2 else 3 end as step ${more}
  from ${eventsOfPersons}
  where timestamp >= $2 and timestamp < $3 and event in ($4, $5, $6) and person_id is not null
  offset 0`;

/** The events that matter: the first one of the first step, and events that can follow an earlier step. */
const isRelevant = `case step when 1 then latest_first is null when 2 then latest_first + interval '336 hours' >= at
  else latest_first is not null end`;

/**
 * Looks back twice in one sort order: from a second step to the latest first step, and from a third step to the latest
 * second step that has a first; of second steps with one first step, the first counts. A person counts at the deepest step, the first time that they reached it. The times of
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
        case when step = 3 then max(entered_at) over ${followed} end as chain_second
      from (
        select person_id, at, step, case when step = 2 then latest_first end as first_at,
          case when step = 2 then min(at) filter (where step = 2) over (partition by person_id, latest_first) end as entered_at
        from (
          select *, max(at) filter (where step = 1) over ${followed} as latest_first from (${funnelSteps()}) as steps
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
          case when step = 3 then max(entered_at) over ${followed} end as chain_second
        from (
          select person_id, at, step, browser, browser_at,
            case when step = 2 and latest_first + interval '336 hours' >= at then latest_first end as first_at,
            case when step = 2 and latest_first + interval '336 hours' >= at
              then min(at) filter (where step = 2) over (partition by person_id, latest_first) end as entered_at
          from (
            select *, max(at) filter (where step = 1) over ${followed} as latest_first,
              min(at) filter (where browser <> '') over (partition by person_id) as browser_at
            from (${funnelSteps(`, coalesce(properties ->> '$browser', '') as browser`)}) as steps
          ) as looked_back where at = browser_at or ${isRelevant}
        ) as seconds
      ) as thirds
    ) as attempts group by person_id
  ) as persons where depth is not null group by browser`;

const floorOf =
  (text: string) =>
  (range: InsightRange): FloorStatement => ({
    text,
    values: [
      range.teamId,
      lastDays(range, funnelDays).from,
      lastDays(range, funnelDays).end,
      ...funnelEvents,
    ],
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

const orderedFunnel: Insight = {
  name: 'Funnel: three steps in order, 30 days',
  query: funnelRequest,
  floor: floorOf(furthest),
  actualOf: ({ results }: QueryOutput) => normalizedSteps(results as readonly Step[]),
  expectedOf: ([row = []]) => normalizedRow(row),
};

const funnelByBrowser: Insight = {
  name: 'Funnel: three steps by browser, 30 days',
  query: (range) => ({
    ...funnelRequest(range),
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

/** Insights whose statements never read all of a partition. */
export const insights: readonly Insight[] = [
  eventsByDay,
  topPages,
  usersByWeek,
  pageviewsByBrowser,
  dailyUsers,
  weeklyUsers,
  orderedFunnel,
  funnelByBrowser,
  actorsOf('month', monthOf),
  foundEvents,
  searchedPersons,
];
