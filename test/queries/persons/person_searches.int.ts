import { beforeAll, describe, expect, it } from '@jest/globals';
import { insertEventRows } from '../../bench/events.ts';
import { openDialectReader } from '../../../src/queries/dialect_reader.ts';
import { queryRelationsOf } from '../../../src/queries/query_source.ts';
import { useTestDatabase } from '../../setup/use_test_database.ts';
import { now, projectOf } from '../actors_query/run_actors_query.ts';
import { asQuery } from '../trends_query/run_trends_query.ts';

const person = (name: string): string => `00000000-0000-0000-0000-0000000000${name}`;
const [ada, bob, gone, old] = [person('ad'), person('b0'), person('90'), person('01')];
const [small, large, other] = [7, 8, 9];

const database = useTestDatabase();
const relations = queryRelationsOf({
  EXPORTD_EVENTS_RELATION: 'public.events',
  EXPORTD_PERSONS_RELATION: 'public.persons',
  EXPORTD_PERSON_DISTINCT_IDS_RELATION: 'public.person_distinct_ids',
});

/** Runs a query as exportd does, and what it compiles to without searches. */
const read = (query: string, projectId: number) =>
  asQuery(
    database.pool,
    projectOf(projectId),
    now,
    async (context) => {
      const reader = await openDialectReader(context);
      const { sql, parameters, searches } = reader.compile(query);
      const plain = await database.pool.query<unknown[]>({
        text: sql,
        values: [...parameters],
        rowMode: 'array',
      });
      const { rows, statement } = await reader.read(query);
      return { rows, plain: plain.rows, statement, searches: searches.length };
    },
    relations,
  );

beforeAll(async () => {
  const start = new Date('2026-10-25Z');
  const rows = { first: 0, end: 20_000, count: 20_000, hours: 24 * 20, carryPersons: false };
  await database.pool.query(insertEventRows(large, start, rows));
  await database.pool.query(`
    insert into public.persons (team_id, id, properties, is_deleted) values
      (${small}, '${ada}', '{"email": "ada@ex.com", "plan": "team"}', false),
      (${small}, '${bob}', '{"email": "bob@ex.com", "plan": "team"}', false),
      (${small}, '${old}', '{"email": "old@ex.com"}', false),
      (${small}, '${gone}', '{"email": "gone@ex.com"}', true),
      (${other}, '${ada}', '{"email": "other@ex.com", "plan": "team"}', false);
    insert into public.person_distinct_ids (team_id, distinct_id, person_id, is_deleted) values
      (${small}, 'ada', '${ada}', false), (${small}, 'merged', '${ada}', false), (${small}, 'bob', '${bob}', false),
      (${small}, 'gone', '${gone}', false), (${small}, 'unmapped', '${ada}', true), (${other}, 'other', '${ada}', false);
    insert into public.events (team_id, uuid, event, distinct_id, person_id, person_properties, timestamp)
      select team, gen_random_uuid(), 'seen', id, person::uuid, own::jsonb, '2026-11-10Z' from (values
        (${small}, 'ada', '${ada}', null), (${small}, 'merged', '${old}', null), (${small}, 'bob', null, null),
        (${small}, 'gone', '${gone}', null), (${small}, 'unmapped', '${ada}', null), (${small}, 'stored', '${bob}', null),
        (${small}, 'nobody', null, null), (${small}, 'bob', null, '{"email": "ada@ex.com"}'),
        (${small}, 'ada', '${ada}', '{"email": "own@ex.com"}'), (${small}, 'ada', '${ada}', '{}'),
        (${small}, 'nobody', null, '{"email": "own@ex.com", "plan": "team"}'), (${other}, 'other', '${ada}', null)
      ) as given (team, id, person, own);
    insert into public.persons (team_id, id, properties)
      select team_id, person_id, jsonb_build_object('email', min(distinct_id) || '@ex.com', 'kind', 'person')
      from public.events where team_id = ${large} group by team_id, person_id;
    insert into public.person_distinct_ids (team_id, distinct_id, person_id)
      select distinct on (team_id, distinct_id) team_id, distinct_id, person_id from public.events where team_id = ${large};
    analyze public.events, public.persons, public.person_distinct_ids`);
});

describe('a condition on a property of the person', () => {
  it.each([
    ["person.properties.email = 'ada@ex.com'", ['ada', 'bob', 'merged', 'unmapped']],
    ["'bob@ex.com' = person.properties.email", ['bob', 'stored']],
    ["person.properties.email in ('bob@ex.com', 'own@ex.com')", ['ada', 'bob', 'nobody', 'stored']],
    [
      "person.properties.plan = 'team' and person.properties.email = 'ada@ex.com'",
      ['ada', 'merged', 'unmapped'],
    ],
    [
      "person.properties.plan = 'team' and distinct_id != 'ada'",
      ['bob', 'merged', 'nobody', 'stored', 'unmapped'],
    ],
    ["poe.properties.email = 'own@ex.com'", ['ada', 'nobody']],
    ["person.properties.email = 'old@ex.com'", []],
    ["person.properties.email = 'gone@ex.com'", []],
    ["person.properties.email = 'other@ex.com'", []],
    ["ifNull(person.properties.email, '') = ''", ['ada', 'gone', 'nobody']],
    ['person.properties.email = person.properties.plan', ['ada', 'gone', 'nobody']],
    ["lower(person.properties.email) = 'ada@ex.com'", ['ada', 'bob', 'merged', 'unmapped']],
    [`person.properties.email = 'ada@ex.com' and person_id = '${bob}'`, ['bob']],
  ])('finds the events of %s', async (condition, expected) => {
    const query = `select distinct_id from events where ${condition} order by distinct_id`;
    const { rows, plain, searches } = await read(query, small);
    expect(rows).toEqual(expected.map((id) => [id]));
    expect(plain).toEqual(rows);
    expect(searches).toBe(1);
  });

  it.each([
    "person.properties.email != 'ada@ex.com'",
    "person.properties.email = 'ada@ex.com' or event = 'none'",
    'person.properties.email = distinct_id',
    "person.properties.email in (select properties.email from persons where properties.plan = 'team')",
    "pdi.person.properties.email = 'ada@ex.com'",
    `person_id = '${ada}'`,
  ])('needs the events first in %s', async (condition) => {
    const { rows, plain, searches } = await read(
      `select distinct_id from events where ${condition} order by distinct_id`,
      small,
    );
    expect(searches).toBe(0);
    expect(rows).toEqual(plain);
  });

  it('is searched first in each subquery and join', async () => {
    const { rows, plain, searches } = await read(
      `select e.distinct_id, (select count() from events where person.properties.email = 'bob@ex.com') as n
       from events as e join person_distinct_ids as p on p.distinct_id = e.distinct_id
       where e.person.properties.email = 'ada@ex.com' order by e.distinct_id`,
      small,
    );
    expect(rows).toEqual([
      ['ada', 2],
      ['bob', 2],
      ['merged', 2],
    ]);
    expect(plain.map((row) => row.map(String))).toEqual(rows.map((row) => row.map(String)));
    expect(searches).toBe(2);
  });

  it('reads all events where most persons fulfil it', async () => {
    const { rows, statement } = await read(
      "select count() from events where person.properties.kind = 'person'",
      large,
    );
    expect(rows).toEqual([[20_000]]);
    expect(statement.parameters.filter((value) => value.startsWith('{'))).toEqual([]);
  });

  it('reads only the events of those who fulfil it', async () => {
    const { rows: persons } = await database.pool.query<{ email: string }>(
      `select properties ->> 'email' as email from public.persons where team_id = $1 order by id limit 1`,
      [large],
    );
    const query = `select count() > 0 from events where person.properties.email = '${persons[0]?.email ?? ''}'`;
    const { rows, statement } = await read(query, large);
    expect(rows).toEqual([[true]]);
    const plan = await database.pool.query<{ 'QUERY PLAN': string }>(`explain (costs off) ${statement.sql}`, [
      ...statement.parameters,
    ]);
    const lines = plan.rows.map((row) => row['QUERY PLAN']).join('\n');
    const { rows: filled } = await database.pool.query<{ name: string }>(
      `select relname::text as name from pg_class where relname like 'events%' and relkind = 'r' and reltuples > 0`,
    );
    expect(lines).toMatch(/Bitmap Index Scan on .*distinct_id/);
    for (const { name } of filled) expect(lines).not.toContain(`Seq Scan on ${name}`);
  });
});
