import { beforeAll, describe, expect, it } from '@jest/globals';
import { insertEventRows } from '../../bench/events.ts';
import { openDialectReader } from '../../../src/queries/dialect_reader.ts';
import { queryRelationsOf } from '../../../src/queries/query_source.ts';
import { useTestDatabase } from '../../setup/use_test_database.ts';
import { now, projectOf } from '../actors_query/run_actors_query.ts';
import { asQuery } from '../trends_query/run_trends_query.ts';

const person = (name: string): string => `00000000-0000-0000-0000-0000000000${name}`;
const [ada, browser, dan] = [person('ad'), person('b0'), person('da')];
const [team, otherTeam] = [7, 8];

const database = useTestDatabase();
const relationsWith = (persons: string, mappings: string) =>
  queryRelationsOf({
    EXPORTD_EVENTS_RELATION: 'public.events',
    EXPORTD_PERSONS_RELATION: persons,
    EXPORTD_PERSON_DISTINCT_IDS_RELATION: mappings,
  });
const ofMigrations = relationsWith('public.persons', 'public.person_distinct_ids');
const ofVersions = relationsWith('public.person_versions', 'public.mapping_versions');

/** Compiles a query, and runs it. */
const read = (query: string, relations = ofMigrations, projectId = team) =>
  asQuery(
    database.pool,
    projectOf(projectId),
    now,
    async (context) => (await openDialectReader(context)).read(query),
    relations,
  );

describe('relations with several versions of a row', () => {
  beforeAll(async () => {
    await database.pool.query(`
      create table public.mapping_rows (like public.person_distinct_ids including defaults);
      create table public.person_rows (like public.persons including defaults);
      -- Unique, but not of a distinct id.
      create unique index on public.mapping_rows (team_id, distinct_id, version);
      create unique index on public.person_rows (team_id, id) where version = 1;
      create view public.mapping_versions as select * from public.mapping_rows;
      create view public.person_versions as select * from public.person_rows;
      insert into public.mapping_rows (team_id, distinct_id, person_id, version, is_deleted) values
        (${team}, 'browser', '${ada}', 2, false), (${team}, 'browser', '${browser}', 1, false),
        (${team}, 'dan', '${ada}', 4, false), (${team}, 'dan', '${ada}', 5, true),
        (${otherTeam}, 'browser', '${dan}', 9, false), (${otherTeam}, 'dan', '${ada}', 9, false);
      insert into public.person_rows (team_id, id, properties, version, is_deleted) values
        (${team}, '${ada}', '{"plan": "free"}', 1, false), (${team}, '${ada}', '{"plan": "team"}', 2, false),
        (${team}, '${dan}', '{"plan": "free"}', 1, false), (${team}, '${dan}', '{}', 2, true),
        (${otherTeam}, '${dan}', '{"plan": "other"}', 9, false);
      insert into public.events (team_id, uuid, event, distinct_id, person_id, timestamp) values
        (${team}, gen_random_uuid(), 'seen', 'browser', '${browser}', '2026-11-10Z'),
        (${team}, gen_random_uuid(), 'seen', 'dan', '${dan}', '2026-11-10Z')`);
  });

  it.each([
    ['views', ofVersions],
    ['tables without a unique index of the key', relationsWith('public.person_rows', 'public.mapping_rows')],
  ])('are read at their newest version from %s', async (_, relations) => {
    const rowsOf = async (query: string) => (await read(query, relations)).rows;
    expect(
      await rowsOf('select distinct_id, person_id, person.properties.plan from events order by distinct_id'),
    ).toEqual([
      ['browser', ada, 'team'],
      ['dan', dan, null],
    ]);
    expect(await rowsOf('select distinct_id, person_id from person_distinct_ids')).toEqual([
      ['browser', ada],
    ]);
    expect(await rowsOf("select id from persons where properties.plan != 'other'")).toEqual([[ada]]);
    expect(await rowsOf(`select distinct_id from events where person_id = '${browser}'`)).toEqual([]);
    expect(await rowsOf(`select distinct_id from events where person_id = '${ada}'`)).toEqual([['browser']]);
  });

  it('are not sorted if a unique index says that there is one', async () => {
    const query = 'select person_id, person.created_at from events';
    expect((await read(query)).statement.sql).not.toContain('distinct on');
    expect((await read(query, ofVersions)).statement.sql.match(/distinct on/g)).toHaveLength(2);
  });
});

describe('the events of a person', () => {
  const projectId = 100;
  beforeAll(async () => {
    const rows = { first: 0, end: 20_000, count: 20_000, hours: 24 * 20, projects: 4 };
    await database.pool.query(insertEventRows(projectId, new Date('2026-10-25Z'), rows));
    await database.pool.query(`
      insert into public.person_distinct_ids (team_id, distinct_id, person_id)
        select distinct on (team_id, distinct_id) team_id, distinct_id, person_id from public.events where team_id >= ${projectId};
      analyze public.events, public.person_distinct_ids`);
  });

  async function planOf(query: string): Promise<string> {
    const { sql, parameters } = (await read(query, ofMigrations, projectId)).statement;
    const { rows } = await database.pool.query<{ 'QUERY PLAN': string }>(`explain ${sql}`, [...parameters]);
    return rows.map((row) => row['QUERY PLAN']).join('\n');
  }

  it.each([
    'person_id = {id}',
    "{id} = person.id and timestamp > '2026-10-01'",
    'pdi.person_id in ({id}, {id})',
    'poe.id in [{id}]',
    "toString(event) != '' and (event = 'seen' or true) and person_id in ({id})",
  ])('are found by indexes of distinct ids and stored persons for %s', async (condition) => {
    const { rows } = await database.pool.query<{ id: string }>(
      'select person_id as id from public.events where team_id = $1 order by uuid limit 1',
      [projectId],
    );
    const where = condition.replaceAll('{id}', `'${rows[0]?.id ?? ''}'`);
    const plan = await planOf(`select count() from events where ${where}`);
    expect(plan).toMatch(/Index Scan .*distinct_id/);
    expect(plan).toMatch(/Index Scan .*person_id/);
    expect(
      (await read(`select count() > 0 from events where ${where}`, ofMigrations, projectId)).rows,
    ).toEqual([[true]]);
  });

  it.each([
    `person_id != '${ada}'`,
    `not person_id = '${ada}'`,
    `person_id not in ('${ada}')`,
    `person_id = '${ada}' or 1 = 1`,
    `e.person_id = '${ada}' or e.event != ''`,
  ])('are not restricted by %s', async (condition) => {
    const { rows } = await read(
      `select count() from events as e where ${condition}`,
      ofMigrations,
      projectId,
    );
    expect(rows).toEqual([[5_000]]);
  });

  it('are compared after a join that selects one match', async () => {
    // The latest event before each is of another person, although the person has earlier ones.
    await database.pool.query(
      `insert into public.events (team_id, uuid, event, distinct_id, person_id, timestamp) values
        (9, gen_random_uuid(), 'a', 'x', '${ada}', '2026-11-10 01:00Z'), (9, gen_random_uuid(), 'a', 'x2', '${dan}', '2026-11-10 02:00Z'),
        (9, gen_random_uuid(), 'b', 'y', '${dan}', '2026-11-10 03:00Z')`,
    );
    const query = `select count() from events as b asof join events as a on a.team_id = b.team_id and a.timestamp < b.timestamp
      where b.event = 'b' and a.person_id = '${ada}'`;
    expect((await read(query, ofMigrations, 9)).rows).toEqual([[0]]);
  });
});
