import type { QueryOutput } from '../../../queries/query_kind.ts';
import { eventsOfPersons, lastDays, type Insight, type InsightRange } from '../insight.ts';

const rowsOf = ({ results }: QueryOutput): readonly (readonly unknown[])[] =>
  results as readonly (readonly unknown[])[];
const parsed = (json: string | null | undefined): unknown => JSON.parse(json ?? 'null');

const dayMs = 86_400_000;

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

export const listInsights: readonly Insight[] = [actorsOfMonth, foundEvents, searchedPersons];
