import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import pg from 'pg';
import { isUnsettled } from './is_unsettled.ts';
import { readSettings } from '../../src/config/settings.ts';
import { checkBarrier, checkBarriers, type Connection } from '../../src/source/barrier.ts';
import type { BarrierState, UnsettledBarrier } from '../../src/domain/barrier.ts';
import { relationsOf } from '../../src/source/relations.ts';
import type { Source } from '../../src/source/source.ts';
import { createTestDatabase, type TestDatabase } from '../setup/database.ts';
import { rollbackPrepared } from '../setup/rollback_prepared.ts';
import { waitFor } from '../setup/wait_for.ts';
import { sourceOf } from './rows.ts';

let database: TestDatabase;
/** A connection of a role without any permissions. It does not see when the transactions of other roles started. */
let source: Source;
/** A connection of a role that sees them, because it has pg_read_all_stats. */
let privileged: Source;
const role = `reader_${process.pid}`;
const privilegedRole = `monitor_${process.pid}`;
const settling: BarrierState = { phase: 'settling' };
const open = { state: { phase: 'open' }, wait_ms: 0, blocked_by: [] };

beforeAll(async () => {
  database = await createTestDatabase();
  // What every role may do whose database keeps the catalogue from the role of queries.
  await database.pool.query(`create role ${role} login password 'reader' in role exportd_other_roles`);
  await database.pool.query(
    `create role ${privilegedRole} login password 'reader' in role pg_read_all_stats, exportd_other_roles`,
  );
  source = sourceAs(role);
  privileged = sourceAs(privilegedRole);
});
afterEach(() => rollbackPrepared(database.pool));
afterAll(async () => {
  await Promise.all([source.close(), privileged.close()]);
  await database.pool.query(`drop role ${role}, ${privilegedRole}`);
  await database.drop();
});

/** A source that connects as another role. */
function sourceAs(name: string, settings: Parameters<typeof sourceOf>[1] = {}): Source {
  const url = new URL(database.url);
  url.username = name;
  url.password = 'reader';
  return sourceOf(url.href, { EXPORTD_SETTLE_POLL_INTERVAL: 123, ...settings });
}

async function openWriter(applicationName = 'writer'): Promise<pg.Client> {
  const writer = new pg.Client({ connectionString: database.url, application_name: applicationName });
  await writer.connect();
  return writer;
}

const barrierOptions = () => ({
  settleMs: 0,
  pollMs: 123,
  relations: relationsOf(readSettings({ DATABASE_URL: database.url })),
  ownApplicationName: 'exportd',
});

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

  it('remembers many transactions by the time until which they started, and waits for all of them', async () => {
    const writers = await Promise.all(Array.from({ length: 12 }, () => openWriter()));
    for (const writer of writers) await writer.query('begin; select now()');
    const cutoff = await sourceNow();
    const { state, blocked_by } = await privileged.checkBarrier(cutoff, settling);
    expect(blocked_by).toHaveLength(writers.length);
    const times = { server_start: expect.any(String), started_until: expect.any(String) };
    expect(state).toEqual({ phase: 'transactions', ...times });
    // A role that does not see when they started lists them.
    const listed = await source.checkBarrier(cutoff, settling);
    expect(listed.state).toMatchObject({ blockers: writers.map(() => ({})) });

    const later = await openWriter();
    await later.query('begin');
    await later.query(insert);
    const [last, ...others] = writers;
    const states = isUnsettled(state) ? [state] : [];
    expect(await privileged.checkBarriers(states)).toMatchObject([{ state }]);
    for (const writer of others) await writer.query('rollback');
    const [few] = await privileged.checkBarriers(states);
    expect(few?.blocked_by).toHaveLength(1);
    expect(few?.state).toMatchObject({ phase: 'transactions', blockers: [{}] });
    // Nothing is missed if the role may not see any more when they started.
    expect(await source.checkBarriers(states)).toMatchObject([{ state: { phase: 'transactions' } }]);
    await last?.query('rollback');
    expect(await privileged.checkBarriers(states)).toEqual([open]);
    await later.query('rollback');
    await Promise.all([...writers, later].map((writer) => writer.end()));
  });

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

  it.each([
    { process: 'has ended by then', listed: 1, phase: 'open' },
    { process: 'blocks if it has none again', listed: 2, phase: 'transactions' },
  ])('asks again about a process without information, which $process', async ({ listed, phase }) => {
    const reader = await openWriter('exportd');
    let lists = 0;
    const query = async (text: string, values: unknown[]) => {
      const { rows } = await reader.query<object>(text, values);
      if (!text.includes('pg_locks')) return { rows };
      lists += 1;
      const unknown = {
        virtual_transaction: '9/9',
        pid: 9,
        is_unknown: true,
        backend_start: null,
        since: null,
      };
      return { rows: lists <= listed ? [...rows, unknown] : rows };
    };
    const check = await checkBarrier(
      { query } as unknown as Connection,
      await sourceNow(),
      settling,
      barrierOptions(),
    );
    expect(check.state.phase).toBe(phase);
    expect(lists).toBe(2);
    await reader.end();
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

describe('which transactions block the barrier', () => {
  /** Runs `work` while a transaction is open in which the statements have run. */
  async function whileOpen(statements: readonly string[], work: (writer: pg.Client) => Promise<void>) {
    const writer = await openWriter();
    for (const statement of ['begin', ...statements]) await writer.query(statement);
    try {
      await work(writer);
    } finally {
      await writer.end();
    }
  }

  it('one that started after the settle time and has not written does not', async () => {
    const cutoff = await sourceNow();
    await whileOpen(['select now()'], async () => {
      expect(await privileged.checkBarrier(cutoff, settling)).toEqual(open);
    });
  });

  it('one that started after the settle time does when it has written, which only its lock shows', async () => {
    const cutoff = await sourceNow();
    await whileOpen([insert], async () => {
      expect(await privileged.checkBarrier(cutoff, settling)).toMatchObject({
        state: { phase: 'transactions', blockers: [{ backend_start: expect.any(String) }] },
        blocked_by: [expect.stringContaining('application writer')],
      });
    });
  });

  it.each([
    {
      when: 'within the settle time does, although it has not written',
      settleMs: 250,
      phase: 'transactions',
    },
    { when: 'right after the settle time does not', settleMs: 150, phase: 'open' },
  ])('one that started $when', async ({ settleMs, phase }) => {
    const patient = sourceAs(privilegedRole, { EXPORTD_SETTLE_DELAY: settleMs });
    await whileOpen([], async (writer) => {
      const { rows } = await writer.query<{ cutoff: string }>(
        `select (now() - interval '200 milliseconds')::text as cutoff`,
      );
      const check = await waitFor(async () => {
        const result = await patient.checkBarrier(rows[0]?.cutoff ?? '', {
          phase: 'settling',
          checked: true,
        });
        return result.state.phase !== 'settling' && result;
      }, 'the cutoff to settle');
      expect(check.state.phase).toBe(phase);
    });
    await patient.close();
  });

  it('one whose start is hidden from the role does, whenever it started', async () => {
    const cutoff = await sourceNow();
    await whileOpen(['select now()'], async () => {
      expect(await source.checkBarrier(cutoff, settling)).toMatchObject({
        state: { phase: 'transactions', blockers: [{ backend_start: null }] },
        blocked_by: [expect.stringContaining('pg_read_all_stats')],
      });
    });
  });

  it('one whose session does not track its activity does', async () => {
    const cutoff = await sourceNow();
    await whileOpen([], async (writer) => {
      await writer.query('rollback');
      await writer.query('set track_activities = off');
      await writer.query('begin');
      await writer.query('select now()');
      expect(await privileged.checkBarrier(cutoff, settling)).toMatchObject({
        state: { phase: 'transactions' },
      });
    });
  });

  it('one that is prepared does, whenever it started', async () => {
    const cutoff = await sourceNow();
    await whileOpen([insert, `prepare transaction 'recent'`], async (writer) => {
      expect(await privileged.checkBarrier(cutoff, settling)).toMatchObject({ state: { phase: 'prepared' } });
      await writer.query(`rollback prepared 'recent'`);
      expect(await privileged.checkBarrier(cutoff, settling)).toEqual(open);
    });
  });
});

describe('the barriers of many intervals', () => {
  /** The states of intervals that a transaction blocked when the wait timed out. */
  const blockedStates = async (intervals: number): Promise<UnsettledBarrier[]> => {
    const { state } = await source.checkBarrier(await sourceNow(), settling);
    if (!isUnsettled(state)) throw new Error(`The barrier is ${state.phase}.`);
    return Array.from({ length: intervals }, () => state);
  };
  /** Checks the states, and counts the statements that read the transactions of the source. */
  const checkAndCount = async (states: readonly UnsettledBarrier[]) => {
    const reader = await openWriter('exportd');
    const statements = jest.spyOn(reader, 'query');
    const checks = await checkBarriers(reader, states, barrierOptions());
    const lists = statements.mock.calls.filter(([text]) => /from pg_catalog.pg_(locks|prepared)/.test(text));
    await reader.end();
    return { checks, lists: lists.length };
  };

  it('are checked with one list of transactions, and open when the last of their own has ended', async () => {
    const [first, second] = [await openWriter('first'), await openWriter('second')];
    await first.query('begin');
    await first.query(insert);
    const older = await blockedStates(1_000);
    await second.query('begin');
    await second.query(insert);
    const newer = await blockedStates(1);
    const blocked = await checkAndCount([...older, ...newer]);
    expect(blocked.lists).toBe(1);
    expect(blocked.checks.map(({ state }) => state.phase)).toEqual(
      [...older, ...newer].map(() => 'transactions'),
    );
    await first.query('commit');
    const opened = await checkAndCount([...older, ...newer]);
    expect(opened.lists).toBe(2);
    expect(opened.checks.slice(0, 1_000)).toEqual(older.map(() => open));
    expect(opened.checks.at(-1)).toMatchObject({
      state: { phase: 'transactions', blockers: [{}] },
      blocked_by: [expect.stringContaining('application second')],
    });
    await second.query('rollback');
    await Promise.all([first.end(), second.end()]);
  });

  it('wait for a transaction that is prepared after the wait timed out', async () => {
    const writer = await openWriter();
    await writer.query('begin');
    await writer.query(insert);
    const [state] = await blockedStates(1);
    await writer.query(`prepare transaction 'after'`);
    await writer.end();
    const [prepared] = await source.checkBarriers(state ? [state] : []);
    expect(prepared).toMatchObject({ state: { phase: 'prepared' } });
    const next = prepared && isUnsettled(prepared.state) ? [prepared.state] : [];
    expect(await source.checkBarriers(next)).toMatchObject([{ state: prepared?.state }]);
    await database.pool.query(`commit prepared 'after'`);
    expect(await source.checkBarriers(next)).toEqual([open]);
  });

  it.each([
    { then: 'open after a restart of the server', server: '2020-01-01T00:00:00.000000Z', phase: 'open' },
    { then: 'open when another session has the ids', session: '2020-01-01T00:00:00.000000Z', phase: 'open' },
    { then: 'wait for the same session', phase: 'transactions' },
    { then: 'wait for a session whose start was hidden', session: null, phase: 'transactions' },
  ])('$then', async ({ server, session, phase }) => {
    const writer = await openWriter();
    await writer.query('begin');
    await writer.query(insert);
    const { state } = await privileged.checkBarrier(await sourceNow(), settling);
    if (!('blockers' in state) || state.phase !== 'transactions')
      throw new Error(`The barrier is ${state.phase}.`);
    const server_start = server ?? state.server_start;
    const blockers = state.blockers.map((blocker) =>
      session === undefined ? blocker : { ...blocker, backend_start: session },
    );
    expect(await privileged.checkBarriers([{ ...state, server_start, blockers }])).toMatchObject([
      { state: { phase } },
    ]);
    await writer.query('rollback');
    await writer.end();
  });
});
