import { describe, expect, it } from '@jest/globals';
import { createPool, isDatabaseUnavailable } from '../../src/journal/database.ts';
import { useTestDatabase } from '../setup/use_test_database.ts';

const database = useTestDatabase();

const errorOf = (statement: string, pool = database.pool): Promise<unknown> =>
  pool.query(statement).then(
    () => 'no error',
    (error: unknown) => error,
  );

describe('a database', () => {
  it('is unavailable when nothing listens at its address', async () => {
    const nowhere = createPool('postgresql://postgres@127.0.0.1:1/nowhere', { max: 1 });
    expect(isDatabaseUnavailable(await errorOf('select 1', nowhere))).toBe(true);
    await nowhere.end();
  });

  it('is unavailable when it terminates the session', async () => {
    expect(isDatabaseUnavailable(await errorOf('select pg_terminate_backend(pg_backend_pid())'))).toBe(true);
  });

  it.each([
    'select * from missing',
    'select 1 / 0',
    'select pg_cancel_backend(pg_backend_pid()), pg_sleep(9)',
  ])('is available when a statement fails: %s', async (statement) => {
    expect(isDatabaseUnavailable(await errorOf(statement))).toBe(false);
  });
});
