import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createPool, isDatabaseUnavailable, type Pool } from '../../src/journal/database.ts';
import { openJournal } from '../../src/projections/registry.ts';
import { createAdvisoryLock } from '../../src/temporal/reconcilers/reconcile_loops.ts';
import { createTestDatabase, type TestDatabase } from '../setup/database.ts';
import { waitFor } from '../setup/wait_for.ts';
import { openDatabaseProxy, type DatabaseProxy } from './database_proxy.ts';

let database: TestDatabase;
let proxy: DatabaseProxy;
let pool: Pool;
beforeAll(async () => {
  database = await createTestDatabase();
  proxy = await openDatabaseProxy(database.url);
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

/** Retries: on a busy machine PostgreSQL itself may exceed the timeout once. */
const retryWhileUnavailable = async <Result>(work: () => Promise<Result>): Promise<Result> => {
  const { value } = await waitFor(
    () =>
      work().then(
        (value) => ({ value }),
        (error: unknown) => {
          if (!isDatabaseUnavailable(error)) throw error;
          return undefined;
        },
      ),
    'a result',
  );
  return value;
};

describe('a connection into a network black hole', () => {
  it('fails its statement, which succeeds on another connection', async () => {
    await retryWhileUnavailable(() => pool.query('select 1'));
    proxy.dropTraffic();
    expect(isDatabaseUnavailable(await errorOf(pool.query('select 1')))).toBe(true);
    const { rows } = await retryWhileUnavailable(() => pool.query('select 1 as one'));
    expect(rows).toEqual([{ one: 1 }]);
  });

  it('fails its transaction, and the pool drops it', async () => {
    const journal = openJournal(pool);
    const transaction = journal.transaction(async ({ connection }) => {
      proxy.dropTraffic();
      await connection.query('select 1');
    });
    expect(isDatabaseUnavailable(await errorOf(transaction))).toBe(true);
    await waitFor(() => pool.totalCount === 0, 'the connection is dropped');
    const again = () => journal.transaction(() => Promise.resolve('done'));
    expect(await retryWhileUnavailable(again)).toBe('done');
  });

  it('loses its lock, which can be acquired again once PostgreSQL detects the loss', async () => {
    const lock = createAdvisoryLock(pool, 8_151_617);
    const tryAcquire = () => retryWhileUnavailable(() => lock.tryAcquire());
    await waitFor(tryAcquire, 'the lock');
    proxy.dropTraffic();
    expect(await tryAcquire()).toBe(false);
    await database.pool.query(
      `select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and objid = 8151617`,
    );
    await waitFor(tryAcquire, 'the lock again');
    lock.release();
  });
});
