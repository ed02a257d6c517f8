import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createPool, type Pool } from '../../src/journal/database.ts';
import { createJournal } from '../../src/journal/journal.ts';
import { isDatabaseUnavailable } from '../../src/journal/unavailable.ts';
import { createLockHolder } from '../../src/temporal/lock_holder.ts';
import { createTestDatabase, type TestDatabase } from '../setup/database.ts';
import { until } from '../setup/until.ts';
import { openSilentProxy, type SilentProxy } from './silent_proxy.ts';

let database: TestDatabase;
let proxy: SilentProxy;
let pool: Pool;
beforeAll(async () => {
  database = await createTestDatabase();
  proxy = await openSilentProxy(database.url);
  pool = createPool(proxy.url, { max: 2, statementTimeoutMs: 1_000 });
});
afterAll(async () => {
  await pool.end();
  await proxy.close();
  await database.drop();
});

const errorOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => 'no error',
    (error: unknown) => error,
  );

describe('a connection that goes silent without a reset', () => {
  it('fails a statement, which may be repeated on another', async () => {
    await pool.query('select 1');
    proxy.silence();
    expect(isDatabaseUnavailable(await errorOf(pool.query('select 1')))).toBe(true);
    expect((await pool.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
  });

  it('fails a transaction in its midst, and is dropped', async () => {
    const journal = createJournal(pool);
    const transaction = journal.transaction(async ({ connection }) => {
      proxy.silence();
      await connection.query('select 1');
    });
    expect(isDatabaseUnavailable(await errorOf(transaction))).toBe(true);
    await until(() => pool.totalCount === 0, 'no connection is left');
    expect(await journal.transaction(() => Promise.resolve('done'))).toBe('done');
  });

  it('loses its lock, which is had again once PostgreSQL has noticed', async () => {
    const lock = createLockHolder(pool, 8_151_617);
    expect(await lock.hold()).toBe(true);
    proxy.silence();
    expect(await lock.hold()).toBe(false);
    await database.pool.query(
      `select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and objid = 8151617`,
    );
    await until(() => lock.hold(), 'the lock');
    lock.release();
  });
});
