import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { readSettings } from '../../src/config/settings.ts';
import { revenueQuery } from '../../src/local_stack/demo/demo_file.ts';
import { seedDemo, startEventGenerator } from '../../src/local_stack/demo/seed.ts';
import { ensureDemoTables } from '../../src/local_stack/demo/demo.ts';
import { readQueryProject } from '../../src/queries/postgres_warehouse.ts';
import { queryRelationsOf } from '../../src/queries/query_source.ts';
import { readSourceSchema } from '../../src/queries/source_schema.ts';
import { rowsOf } from '../../src/dialect/test/rows_of.ts';
import { createTestDatabase, type TestDatabase } from '../setup/database.ts';
import { waitFor } from '../setup/wait_for.ts';
import { createProject } from '../../src/http/accounts/projects.ts';

const anchor = new Date('2026-11-01T10:20:30Z');
/** A third of what `npm start` writes: late events of some hours have not arrived yet. */
const hours = 16;
const ignoreReport = () => undefined;

describe('the demo data', () => {
  let database: TestDatabase;
  const query = async (statement: string) =>
    (await database.pool.query<Record<string, number | boolean | string>>(statement)).rows[0];

  beforeAll(async () => {
    database = await createTestDatabase();
    await seedDemo(database.url, { teamId: 1, seed: 5, anchor, hours }, ignoreReport);
    for (const teamId of [2, 4])
      await seedDemo(database.url, { teamId, seed: 5, anchor, hours: 1 }, ignoreReport);
  });
  afterAll(() => database.drop());

  it('is the same for the same seed and time', async () => {
    const different = (relation: string, columns: string) => `(
      select count(*) from ((select ${columns} from ${relation} where team_id = 2)
        except (select ${columns} from ${relation} where team_id = 4)) as missing)`;
    expect(
      await query(`select
        (select count(*) from events where team_id = 2) = (select count(*) from events where team_id = 4) as as_many,
        ${different('events', 'uuid, event, distinct_id, person_id, properties, timestamp, inserted_at')} as events,
        ${different('persons', 'id, properties, updated_at, version')} as persons,
        ${different('session_replay_events', 'session_id, distinct_id, size')} as replays,
        ${different('groups', 'group_type_index, group_key, group_properties, updated_at')} as groups`),
    ).toEqual({ as_many: true, events: 0, persons: 0, replays: 0, groups: 0 });
  });

  it('fills every hour, has few late events and none from the future', async () => {
    const rows = await query(`select count(*) as events, count(distinct uuid) as ids,
        avg((inserted_at > timestamp + interval '1 hour')::int)::float8 as late,
        bool_and(inserted_at <= '${anchor.toISOString()}' and timestamp <= inserted_at) as past,
        (select min(rows) from (
          select count(*) as rows from events where team_id = 1 and inserted_at < '2026-11-01T10:00Z'
          group by date_trunc('hour', inserted_at)) as hours) as min_rows,
        (select count(*) from (
          select from events where team_id = 1 and inserted_at < '2026-11-01T10:00Z'
          group by date_trunc('hour', inserted_at)) as hours) as hours
      from events where team_id = 1`);
    expect(rows).toMatchObject({ past: true, hours, ids: rows?.events });
    expect(rows?.events).toBeGreaterThan(60_000);
    expect(rows?.min_rows).toBeGreaterThan(2_000);
    expect(rows?.late).toBeCloseTo(0.02, 2);
  });

  it('is consistent: persons have distinct ids, replays have events, groups have members', async () => {
    expect(
      await query(`select
        (select count(*) from persons where team_id = 1) as persons,
        (select min(ids) from (select count(*) as ids from person_distinct_ids where team_id = 1 group by person_id) as each) as ids,
        (select count(*) from session_replay_events where team_id = 1) as replays,
        (select count(*) from session_replay_events as replay where team_id = 1 and not exists (
          select from events where team_id = 1 and properties->>'$session_id' = replay.session_id)) as replays_without_events,
        (select count(*) from events where team_id = 1 and not exists (
          select from person_distinct_ids as known where known.team_id = 1
            and known.distinct_id = events.distinct_id and known.person_id = events.person_id)) as events_of_unknown_persons,
        (select count(distinct group_properties->>'name') from groups where team_id = 1) as organisations,
        (select count(*) from groups where team_id = 1 and not exists (
          select from events where team_id = 1 and properties->>'$group_0' = group_key)) as organisations_without_events,
        (select count(*) from events where team_id = 1 and not exists (
          select from groups where team_id = 1 and group_key = properties->>'$group_0')
          and properties ? '$group_0') as events_of_unknown_organisations,
        (select max(organisations) from (
          select count(distinct properties->>'$group_0') as organisations from events where team_id = 1
          group by person_id) as each) as max_organisations`),
    ).toEqual({
      persons: 20_000,
      ids: 2,
      replays: 2_000,
      replays_without_events: 0,
      events_of_unknown_persons: 0,
      organisations: 50,
      organisations_without_events: 0,
      events_of_unknown_organisations: 0,
      max_organisations: 1,
    });
  });

  it('includes charges that match the revenue in the query of the instructions', async () => {
    const { pool } = database;
    const project = await createProject(pool, { name: 'Demo' });
    expect(project.id).toBe(1);
    for (let start = 0; start < 2; start += 1) await ensureDemoTables(pool, project.id);
    const { project: settings } = await readQueryProject(pool, project.id);
    const schema = await readSourceSchema(
      pool,
      queryRelationsOf(readSettings({ DATABASE_URL: database.url })),
      settings,
    );
    const rows = await rowsOf(pool, revenueQuery, {
      teamId: project.id,
      timezone: 'UTC',
      weekStartDay: 'sunday',
      now: anchor.toISOString(),
      schema,
    });
    expect(rows.map(([currency]) => currency).sort()).toEqual(['eur', 'gbp', 'usd']);
    for (const [, count, charged, tracked] of rows) {
      expect(Number(count)).toBeGreaterThan(10);
      expect(Number(charged)).toBeCloseTo(Number(tracked), 2);
    }
  });

  it('keeps arriving', async () => {
    const eventGenerator = startEventGenerator(database.url, 3, 5, ignoreReport);
    await waitFor(async () => {
      const { rows } = await database.pool.query<{ events: number; ids: number; seconds: number }>(
        `select count(*) as events, count(distinct uuid) as ids,
           count(distinct date_trunc('second', inserted_at)) as seconds from events where team_id = 3`,
      );
      return rows[0] !== undefined && rows[0].seconds >= 2 && rows[0].events === rows[0].ids;
    }, 'events of two seconds with unique ids');
    await eventGenerator.stop();
  });
});
