import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createPool, type Pool } from '../../src/journal/database.ts';
import { migrateSource } from '../../src/migrate/migrate_source.ts';
import { createTestDatabase, type TestDatabase } from '../setup/database.ts';
import { fromSetUp } from '../setup/environment.ts';
import { databaseOf, onServer } from '../setup/template_database.ts';

const dates = ['-infinity', '0033-04-03Z', '1999-12-31Z', 'now', '2026-11-01Z', '9999-01-01Z', 'infinity'];
const insert = `insert into public.events (team_id, uuid, event, distinct_id, timestamp)
  select 1, gen_random_uuid(), 'e', 'd', t from unnest($1::timestamptz[]) as t`;

const partitionsOf = async (pool: Pool): Promise<readonly string[]> => {
  const { rows } = await pool.query<{ name: string }>(
    `select relid::regclass::text as name from pg_partition_tree('public.events') where isleaf order by 1`,
  );
  return rows.map(({ name }) => name);
};

describe('the events of a new installation', () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createTestDatabase();
  });
  afterAll(() => database.drop());

  it('have a partition for this month, the last and the next six, and one for any other date', async () => {
    expect(await partitionsOf(database.pool)).toHaveLength(9);
    await database.pool.query(insert, [dates]);
    const { rows } = await database.pool.query<{ of_month: string; count: number }>(
      `select tableoid::regclass = ('public.events_' || to_char(now() at time zone 'UTC', 'YYYY_MM'))::regclass
         as of_month, count(*) from public.events where timestamp = now() or timestamp::text like '%inf%' group by 1`,
    );
    expect(rows).toEqual([{ of_month: false, count: 2 }]);
    const all = await database.pool.query('select from public.events where team_id = 1');
    expect(all.rowCount).toBe(dates.length);
  });

  it('get the months that are missing, however often they are asked for', async () => {
    const add = (ahead: number) =>
      database.pool.query<{ name: string }>('select public.exportd_add_event_months($1) as name', [ahead]);
    // The month may be another than when the database was made.
    await add(6);
    const before = await partitionsOf(database.pool);
    expect((await add(6)).rowCount).toBe(0);
    const { rows } = await add(8);
    expect(rows).toHaveLength(2);
    expect(await partitionsOf(database.pool)).toEqual(
      [...before, ...rows.map(({ name }) => name)].toSorted(),
    );
  });
});

describe('the plain table of events that there was', () => {
  const name = `test_${randomUUID().replaceAll('-', '')}`;
  const role = `reader_${name}`;
  let url: string;
  let pool: Pool;
  beforeAll(async () => {
    const serverUrl = fromSetUp('EXPORTD_TEST_DATABASE_URL');
    await onServer(serverUrl, `create database ${name}`);
    url = databaseOf(serverUrl, name);
    pool = createPool(url, { max: 2 });
    const first = join(import.meta.dirname, '../../src/source/migrations/0001_relations.sql');
    await pool.query(readFileSync(first, 'utf8'));
    await pool.query(`
      create table public.exportd_source_migrations (id serial primary key, name varchar(255) not null, run_on timestamp not null);
      insert into public.exportd_source_migrations (name, run_on) values ('0001_relations', now());
      create role ${role}; grant select on public.events to ${role};
      create view public.shown_events as select * from public.events`);
    await pool.query(insert, [dates]);
  });
  afterAll(async () => {
    await pool.query(`drop owned by ${role}; drop role ${role}`);
    await pool.end();
    await onServer(fromSetUp('EXPORTD_TEST_DATABASE_URL'), `drop database ${name} with (force)`);
  });

  const digest = async (): Promise<unknown> =>
    (
      await pool.query(
        `select count(*), md5(string_agg(events::text, ',' order by uuid)) as digest from public.events`,
      )
    ).rows[0];

  it('is left alone while a view would go on reading it alone', async () => {
    await expect(migrateSource(url)).rejects.toThrow(
      /public\.events becomes a partitioned table, and .*shown_events would stay with the old one/,
    );
    await pool.query('drop view public.shown_events');
  });

  it('becomes the default partition, with every row and who may read it', async () => {
    const before = await digest();
    expect(await migrateSource(url)).toEqual(['0002_event_months', '0003_groups']);
    expect(await digest()).toEqual(before);
    const partitions = await partitionsOf(pool);
    const month = new Date().toISOString().slice(0, 7).replace('-', '_');
    // It had begun in the plain table.
    expect(partitions).not.toContain(`events_${month}`);
    expect(partitions).toContain('events_default');
    const { rows } = await pool.query(
      `select from pg_stats where tablename = 'events' and attname = 'event' and inherited`,
    );
    expect(rows).toHaveLength(1);
    await pool.query(insert, [['now']]);
    const read = await pool.query<{ count: number }>(
      `begin; set local role ${role}; select count(*) from public.events; commit`,
    );
    const [, , counted] = read as unknown as readonly { rows: { count: number }[] }[];
    expect(counted?.rows).toEqual([{ count: dates.length + 1 }]);
  });

  it('keeps its index, which the export pages by', async () => {
    const { rows } = await pool.query<{ parent: string }>(
      `select inhparent::regclass::text as parent from pg_inherits
       where inhrelid = 'public.events_default_team_inserted'::regclass`,
    );
    expect(rows).toEqual([{ parent: 'events_team_inserted' }]);
  });
});
