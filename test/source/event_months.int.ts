import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Pool } from '../../src/journal/database.ts';
import { createTestDatabase, type TestDatabase } from '../setup/database.ts';

const dates = ['-infinity', '0033-04-03Z', '1999-12-31Z', 'now', '2026-11-01Z', '9999-01-01Z', 'infinity'];
const insert = `insert into public.events (team_id, uuid, event, distinct_id, timestamp)
  select 1, gen_random_uuid(), 'e', 'd', t from unnest($1::timestamptz[]) as t`;

const partitionsOf = async (pool: Pool): Promise<readonly string[]> => {
  const { rows } = await pool.query<{ name: string }>(
    `select relid::regclass::text as name from pg_partition_tree('public.events') where isleaf order by 1`,
  );
  return rows.map(({ name }) => name);
};

describe('event partitions of a new installation', () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createTestDatabase();
  });
  afterAll(() => database.drop());

  it('covers the previous, this and the next six months, with a default for any other date', async () => {
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

  it('adds only the missing months', async () => {
    const add = (ahead: number) =>
      database.pool.query<{ name: string }>('select public.exportd_add_event_months($1) as name', [ahead]);
    // A new month may have started since the database was created.
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
