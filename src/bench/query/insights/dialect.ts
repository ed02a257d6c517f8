import type { QueryOutput } from '../../../queries/query_kind.ts';
import { eventsOfPersons, startOf, type Insight, type InsightRange } from '../insight.ts';

const dayMs = 86_400_000;
const before = ({ now }: InsightRange, days: number): Date => new Date(now.getTime() - days * dayMs);
const dialect = (query: string) => () => ({ kind: 'DialectQuery', query });
const rowsOf = ({ results }: QueryOutput): unknown => results;
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
  actualOf: rowsOf,
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
  actualOf: rowsOf,
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
  actualOf: rowsOf,
  expectedOf: (rows) => rows.map(([week, users]) => [week, Number(users)]),
};

export const dialectInsights: readonly Insight[] = [eventsByDay, topPages, usersByWeek];
