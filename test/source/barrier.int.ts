import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import type { BarrierState, Source } from '../../src/source/source.ts';
import { createTestDatabase, type TestDatabase } from '../setup/database.ts';
import { waitFor } from '../setup/wait_for.ts';
import { sourceOf } from './rows.ts';

let database: TestDatabase;
/** A connection of a role without any permissions. */
let source: Source;
const role = `reader_${process.pid}`;
const settling: BarrierState = { phase: 'settling' };

beforeAll(async () => {
  database = await createTestDatabase();
  await database.pool.query(`create role ${role} login password 'reader'`);
  const url = new URL(database.url);
  url.username = role;
  url.password = 'reader';
  source = sourceOf(url.href, { EXPORTD_SETTLE_POLL_INTERVAL: 123 });
});
afterAll(async () => {
  await source.close();
  await database.pool.query(`drop role ${role}`);
  await database.drop();
});

async function openWriter(applicationName = 'writer'): Promise<pg.Client> {
  const writer = new pg.Client({ connectionString: database.url, application_name: applicationName });
  await writer.connect();
  return writer;
}

const insert = `insert into public.events (team_id, uuid, event, distinct_id, timestamp, inserted_at)
  values (1, gen_random_uuid(), 'e', 'd', now(), now())`;

const sourceNow = async (): Promise<string> =>
  (await database.pool.query<{ now: string }>('select clock_timestamp()::text as now')).rows[0]?.now ?? '';

async function countBefore(cutoff: string): Promise<number> {
  const { rows } = await database.pool.query('select from public.events where inserted_at < $1', [cutoff]);
  return rows.length;
}

describe('the barrier', () => {
  it.each(['starts and has not written yet', 'starts and writes'])(
    'waits for a transaction that %s before the cutoff and commits after it',
    async (order) => {
      const writer = await openWriter();
      await writer.query('begin');
      await writer.query('select now()');
      if (order === 'starts and writes') await writer.query(insert);
      const cutoff = await sourceNow();
      const before = await countBefore(cutoff);
      const first = await source.checkBarrier(cutoff, settling);
      expect(first).toMatchObject({ state: { phase: 'transactions' }, wait_ms: 123 });
      expect(first.blocked_by).toEqual([expect.stringContaining('application writer')]);
      // Transactions that start after the list was read do not block it.
      const later = await openWriter();
      await later.query('begin');
      await later.query(insert);
      expect(await source.checkBarrier(cutoff, first.state)).toMatchObject({ state: first.state });
      if (order !== 'starts and writes') await writer.query(insert);
      await writer.query('commit');
      expect(await source.checkBarrier(cutoff, first.state)).toEqual({
        state: { phase: 'open' },
        wait_ms: 0,
        blocked_by: [],
      });
      expect(await countBefore(cutoff)).toBe(before + 1);
      await later.query('rollback');
      await Promise.all([writer.end(), later.end()]);
    },
  );

  it('waits for a transaction that is prepared meanwhile', async () => {
    const writer = await openWriter();
    await writer.query('begin');
    await writer.query(insert);
    const cutoff = await sourceNow();
    const open = await source.checkBarrier(cutoff, settling);
    expect(open.state.phase).toBe('transactions');
    await writer.query(`prepare transaction 'order''s 1'`);
    const prepared = await source.checkBarrier(cutoff, open.state);
    expect(prepared).toMatchObject({ state: { phase: 'prepared' }, wait_ms: 123 });
    expect(prepared.blocked_by).toEqual([expect.stringContaining(`prepared transaction 'order''s 1'`)]);
    expect(await source.checkBarrier(cutoff, settling)).toMatchObject({ state: { phase: 'prepared' } });
    await writer.query(`commit prepared 'order''s 1'`);
    expect(await source.checkBarrier(cutoff, prepared.state)).toMatchObject({ state: { phase: 'open' } });
    await writer.end();
  });

  it('ignores sessions of exportd and of other databases, and a vacuum', async () => {
    const own = await openWriter('exportd');
    await own.query('begin');
    await own.query('select now()');
    // A vacuum with a long cost delay after each of many pages.
    await database.pool.query(`
      create table public.vacuumed as select repeat(md5(n::text), 60) as filler from generate_series(1, 2000) n`);
    const vacuum = await openWriter('vacuum');
    await vacuum.query(`set vacuum_cost_delay = '100ms'; set vacuum_cost_limit = 1; set vacuum_cost_page_hit = 10000;
      set vacuum_cost_page_miss = 10000; set vacuum_cost_page_dirty = 10000`);
    const vacuumed = vacuum.query('vacuum public.vacuumed').catch((error: unknown) => error);
    const elsewhere = new URL(database.url);
    elsewhere.pathname = '/postgres';
    const other = new pg.Client(elsewhere.href);
    await other.connect();
    await other.query('begin');
    await other.query('select now()');
    const vacuumAtWork = async () =>
      (
        await database.pool.query<{ pid: number }>(
          `select pid from pg_stat_progress_vacuum join pg_stat_activity a using (pid)
           where a.datname = current_database() and application_name = 'vacuum'`,
        )
      ).rows[0]?.pid;
    const vacuumPid = await waitFor(vacuumAtWork, 'the vacuum at work');
    const cutoff = await sourceNow();
    expect(await source.checkBarrier(cutoff, settling)).toEqual({
      state: { phase: 'open' },
      wait_ms: 0,
      blocked_by: [],
    });
    expect(await vacuumAtWork()).toBe(vacuumPid);
    await database.pool.query('select pg_cancel_backend($1)', [vacuumPid]);
    expect(await vacuumed).toMatchObject({ code: '57014' });
    await Promise.all([own.end(), vacuum.end(), other.end()]);
  });

  it('waits by the clock of the source until the cutoff has settled, the first time at least the settle time', async () => {
    const unhurried = sourceOf(database.url, { EXPORTD_SETTLE_DELAY: 60_000 });
    const cutoff = await sourceNow();
    const first = await unhurried.checkBarrier(cutoff, settling);
    expect(first).toEqual({ state: { phase: 'settling', checked: true }, wait_ms: 60_000, blocked_by: [] });
    const second = await unhurried.checkBarrier(cutoff, first.state);
    expect(second).toMatchObject({ state: first.state, blocked_by: [] });
    expect(second.wait_ms).toBeGreaterThan(0);
    expect(second.wait_ms).toBeLessThan(60_000);
    await unhurried.close();
  });
});
