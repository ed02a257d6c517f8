import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { readSettings } from '../../src/config/settings.ts';
import { createSource } from '../../src/source/postgres_source.ts';
import { createPool, DatabaseIsStandby, isDatabaseUnavailable } from '../../src/journal/database.ts';
import { connectToSource, SourceIsStandby } from '../../src/source/source_connection.ts';
import { allRows } from '../../src/source/row_selection.ts';
import { isUnsettled } from './is_unsettled.ts';
import type { BarrierState } from '../../src/domain/barrier.ts';
import type { RowRange, Source } from '../../src/source/source.ts';
import { createTestDatabase, type TestDatabase } from '../setup/database.ts';
import { waitFor } from '../setup/wait_for.ts';
import { blocksOf, rowsOf, sourceOf } from './rows.ts';
import { startStandbyServers, type StandbyServers } from './standby_servers.ts';
import { openDatabaseProxy } from '../journal/database_proxy.ts';

const settling: BarrierState = { phase: 'settling' };
const open = { state: { phase: 'open' }, wait_ms: 0, blocked_by: [] };
const insert = `insert into public.events (team_id, uuid, event, distinct_id, timestamp)
  values (1, gen_random_uuid(), 'e', 'd', now())`;

let servers: StandbyServers;
let writer: pg.Client;
let standby: pg.Client;
let source: Source;
const connect = async (url: string): Promise<pg.Client> => {
  const client = new pg.Client({ connectionString: url, application_name: 'test' });
  await client.connect();
  // A restart of the server terminates the session.
  client.on('error', () => undefined);
  return client;
};
const primaryNow = async (): Promise<string> =>
  (await writer.query<{ now: string }>('select clock_timestamp()::text as now')).rows[0]?.now ?? '';
const rangeTo = (end: string): RowRange => ({
  model: 'events',
  team_id: 1,
  interval: { start: '2000-01-01T00:00:00Z', end },
  selection: allRows,
});

beforeAll(async () => {
  servers = await startStandbyServers();
  [writer, standby] = [await connect(servers.primaryUrl), await connect(servers.standbyUrl)];
  source = createSource({
    sourceUrl: servers.standbyUrl,
    primaryUrl: servers.primaryUrl,
    settings: readSettings({
      DATABASE_URL: servers.primaryUrl,
      EXPORTD_SETTLE_DELAY: '0s',
      EXPORTD_SETTLE_POLL_INTERVAL: '123ms',
    }),
  });
});
afterAll(async () => {
  await Promise.all([source.close(), writer.end(), standby.end()]);
  await servers.stop();
});

describe('a source that is a standby', () => {
  it('is rejected without the URL of its primary', async () => {
    const alone = sourceOf(servers.standbyUrl);
    await expect(alone.checkBarrier(await primaryNow(), settling)).rejects.toThrow(
      /SOURCE_PRIMARY_DATABASE_URL/,
    );
    await alone.close();
  });

  it('is read when the primary has no open transaction and the standby has replayed them', async () => {
    await writer.query('begin');
    await writer.query(insert);
    const looker = await connect(servers.primaryUrl);
    const { rows } = await looker.query<{ now: string }>('select clock_timestamp()::text as now');
    const cutoff = rows[0]?.now ?? '';
    const blocked = await source.checkBarrier(cutoff, settling);
    expect(blocked).toMatchObject({ state: { phase: 'transactions' }, wait_ms: 123 });
    await standby.query('select pg_wal_replay_pause()');
    await waitFor(
      async () =>
        (await standby.query<{ state: string }>('select pg_get_wal_replay_pause_state() as state')).rows[0]
          ?.state === 'paused',
      'the standby pauses replay',
    );
    await writer.query('commit');
    const behind = await source.checkBarrier(cutoff, blocked.state);
    expect(behind).toMatchObject({ state: { phase: 'replaying' }, wait_ms: 123 });
    expect(behind.blocked_by).toEqual([expect.stringContaining('the standby')]);
    expect(await source.checkBarrier(cutoff, behind.state)).toMatchObject({ state: behind.state });
    expect(await source.countRows(rangeTo(cutoff))).toBe(0);
    await standby.query('select pg_wal_replay_resume()');
    const opened = await waitFor(async () => {
      const check = await source.checkBarrier(cutoff, behind.state);
      return check.state.phase === 'open' && check;
    }, 'the standby has replayed the row');
    expect(opened).toEqual(open);
    expect(await source.countRows(rangeTo(cutoff))).toBe(1);
    expect((await blocksOf(source, rangeTo(cutoff))).flatMap(rowsOf)).toHaveLength(1);
    await looker.end();
  });

  it('is read immediately when it has replayed everything', async () => {
    const last = await waitFor(async () => {
      const check = await source.checkBarrier(await primaryNow(), settling);
      return check.state.phase === 'open' && check;
    }, 'an open barrier');
    expect(last).toEqual(open);
  });
});

describe('a restart of the primary', () => {
  it('ends the open transactions that blocked a barrier, and not the prepared ones', async () => {
    const [open, prepared] = [await connect(servers.primaryUrl), await connect(servers.primaryUrl)];
    const cutoff = await primaryNow();
    for (const session of [open, prepared]) for (const sql of ['begin', insert]) await session.query(sql);
    const { state: blocked } = await source.checkBarrier(cutoff, settling);
    expect(blocked).toMatchObject({ phase: 'transactions', blockers: [{}, {}] });
    await prepared.query(`prepare transaction 'restart'`);
    await servers.restartPrimary();
    const waiting = isUnsettled(blocked) ? [blocked] : [];
    const [afterRestart] = await source.checkBarriers(waiting);
    expect(afterRestart?.state).toEqual({
      phase: 'prepared',
      blockers: [expect.stringContaining('restart')],
    });
    const looker = await connect(servers.primaryUrl);
    await looker.query(`commit prepared 'restart'`);
    await looker.end();
    const stillPrepared = afterRestart && isUnsettled(afterRestart.state) ? [afterRestart.state] : [];
    await waitFor(async () => {
      const checks = await source.checkBarriers([...stillPrepared, ...waiting]);
      return checks.every(({ state }) => state.phase === 'open');
    }, 'the standby has replayed the prepared transaction');
    expect(await source.countRows(rangeTo(cutoff))).toBeGreaterThan(0);
  });
});

describe('a source that subscribes to a publisher', () => {
  let database: TestDatabase;
  let subscriber: Source;
  let publisher: pg.Client;
  beforeAll(async () => {
    publisher = await connect(servers.primaryUrl);
    database = await createTestDatabase();
    subscriber = sourceOf(database.url, { EXPORTD_SETTLE_POLL_INTERVAL: 123 });
    await publisher.query('truncate events');
    await publisher.query('create publication everything for table events');
    await database.pool.query(
      `create subscription changes connection ${pg.escapeLiteral(servers.primaryUrl)} publication everything`,
    );
  });
  afterAll(async () => {
    await subscriber.close();
    await database.pool.query('drop subscription changes');
    await publisher.query('drop publication everything');
    await publisher.end();
    await database.drop();
  });

  /** The publisher's time. A message in its log makes it report its position at once. */
  const publisherNow = async (): Promise<string> =>
    (
      await publisher.query<{ now: string }>(
        `select clock_timestamp()::text as now, pg_logical_emit_message(false, 'test', '')`,
      )
    ).rows[0]?.now ?? '';

  /** Checks a barrier until it is open. */
  const waitUntilOpen = (cutoff: string, from: BarrierState) =>
    waitFor(async () => {
      await publisherNow();
      const check = await subscriber.checkBarrier(cutoff, from);
      return check.state.phase === 'open' && check;
    }, 'the subscription has applied everything');

  it('waits until the changes that the publisher had at the cutoff are applied', async () => {
    await waitUntilOpen(await publisherNow(), settling);
    const applying = await connect(database.url);
    await applying.query('begin');
    await applying.query('lock table events in exclusive mode');
    await publisher.query(insert);
    const cutoff = await publisherNow();
    const blocked = await waitFor(async () => {
      const check = await subscriber.checkBarrier(cutoff, settling);
      return check.state.phase === 'subscribed' && check;
    }, 'the barrier waits for the subscription');
    expect(blocked).toMatchObject({ state: { phase: 'subscribed' }, wait_ms: 123 });
    expect(blocked.blocked_by).toEqual([expect.stringContaining('subscription changes')]);
    // Also for the maintenance, which follows up what was not settled.
    const [later] = await subscriber.checkBarriers(isUnsettled(blocked.state) ? [blocked.state] : []);
    expect(later?.state).toEqual(blocked.state);
    await applying.query('rollback');
    await applying.end();
    await waitUntilOpen(cutoff, blocked.state);
    expect(await subscriber.countRows(rangeTo(cutoff))).toBe(1);
  });

  it('is not settled while the subscription is disabled', async () => {
    await database.pool.query('alter subscription changes disable');
    const cutoff = await publisherNow();
    await waitFor(async () => {
      const { blocked_by } = await subscriber.checkBarrier(cutoff, settling);
      return blocked_by.some((reason) => reason.includes('disabled'));
    }, 'the subscription is disabled');
    const { findings } = await subscriber.check(1, { model: 'events' });
    expect(findings).toContainEqual(
      expect.objectContaining({ level: 'warning', subject: 'subscription changes' }),
    );
    await database.pool.query('alter subscription changes enable');
  });
});

describe('an address that leads to a standby during a failover', () => {
  it('is not read as a primary, and is read once it leads to the primary', async () => {
    const cutoff = new Date().toISOString();
    const proxy = await openDatabaseProxy(servers.standbyUrl);
    const throughProxy = sourceOf(proxy.url);
    try {
      const reads = [
        throughProxy.countRows(rangeTo(cutoff)),
        blocksOf(throughProxy, rangeTo(cutoff)),
        throughProxy.checkBarrier(cutoff, settling),
      ];
      await Promise.all(reads.map((read) => expect(read).rejects.toThrow(SourceIsStandby)));
      proxy.leadTo(servers.primaryUrl);
      expect(await throughProxy.countRows(rangeTo(cutoff))).toBeGreaterThan(0);
      expect((await blocksOf(throughProxy, rangeTo(cutoff))).length).toBeGreaterThan(0);
      expect(await throughProxy.checkBarrier(cutoff, settling)).toEqual(open);
    } finally {
      await throughProxy.close();
      await proxy.close();
    }
  });

  it('is not used as the control database', async () => {
    const proxy = await openDatabaseProxy(servers.standbyUrl);
    const pool = createPool(proxy.url, { max: 1 });
    try {
      const error: unknown = await pool.query('select 1').catch((thrown: unknown) => thrown);
      expect([error, isDatabaseUnavailable(error)]).toEqual([expect.any(DatabaseIsStandby), true]);
      proxy.leadTo(servers.primaryUrl);
      expect((await pool.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
    } finally {
      await pool.end();
      await proxy.close();
    }
  });

  // Last, because the standby does not become one again.
  it('is connected to again when the standby behind it was promoted', async () => {
    const proxy = await openDatabaseProxy(servers.standbyUrl);
    const reader = connectToSource({
      sourceUrl: proxy.url,
      applicationName: 'a test',
      maxConnections: 1,
      statementTimeoutMs: 60_000,
    });
    const readPid = () =>
      reader.read({}, undefined, async ({ connection }) => {
        const { rows } = await connection.query<{ pid: number }>('select pg_backend_pid() as pid');
        return rows[0]?.pid;
      });
    try {
      const first = await readPid();
      expect(await readPid()).toBe(first);
      await servers.promoteStandby();
      const second = await readPid();
      expect([second === first, proxy.opened]).toEqual([false, 2]);
      expect(await readPid()).toBe(second);
    } finally {
      await reader.close();
      await proxy.close();
    }
  });
});
