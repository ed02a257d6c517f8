import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createPool, type Pool } from '../../src/journal/database.ts';
import { createJournal } from '../../src/journal/journal.ts';
import { isDatabaseUnavailable } from '../../src/journal/database_errors.ts';
import { createAdvisoryLock } from '../../src/temporal/reconcilers/advisory_lock.ts';
import { createTestDatabase, type TestDatabase } from '../setup/database.ts';
import { until } from '../setup/until.ts';
import { openSilentProxy, type SilentProxy } from './blackhole_proxy.ts';

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

/** On a busy machine PostgreSQL may be as silent as the proxy for once: what it does not answer in time is asked again. */
const untilAnswered = async <Answer>(work: () => Promise<Answer>): Promise<Answer> => {
  const { answer } = await until(
    () =>
      work().then(
        (answer) => ({ answer }),
        (error: unknown) => {
          if (!isDatabaseUnavailable(error)) throw error;
          return undefined;
        },
      ),
    'an answer',
  );
  return answer;
};

describe('a connection that goes silent without a reset', () => {
  it('fails a statement, which may be repeated on another', async () => {
    await untilAnswered(() => pool.query('select 1'));
    proxy.silence();
    expect(isDatabaseUnavailable(await errorOf(pool.query('select 1')))).toBe(true);
    const { rows } = await untilAnswered(() => pool.query('select 1 as one'));
    expect(rows).toEqual([{ one: 1 }]);
  });

  it('fails a transaction in its midst, and is dropped', async () => {
    const journal = createJournal(pool);
    const transaction = journal.transaction(async ({ connection }) => {
      proxy.silence();
      await connection.query('select 1');
    });
    expect(isDatabaseUnavailable(await errorOf(transaction))).toBe(true);
    await until(() => pool.totalCount === 0, 'no connection is left');
    const again = () => journal.transaction(() => Promise.resolve('done'));
    expect(await untilAnswered(again)).toBe('done');
  });

  it('loses its lock, which is had again once PostgreSQL has noticed', async () => {
    const lock = createAdvisoryLock(pool, 8_151_617);
    const hold = () => untilAnswered(() => lock.tryAcquire());
    await until(hold, 'the lock');
    proxy.silence();
    expect(await hold()).toBe(false);
    await database.pool.query(
      `select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and objid = 8151617`,
    );
    await until(hold, 'the lock again');
    lock.release();
  });
});
