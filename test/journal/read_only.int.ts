import { describe, expect, it } from '@jest/globals';
import { createPool, inTransaction, isDatabaseUnavailable } from '../../src/journal/database.ts';
import { useTestDatabase } from '../setup/use_test_database.ts';
import { waitFor } from '../setup/wait_for.ts';

const database = useTestDatabase();

describe('connections that only allow reads, as after a failover', () => {
  it('are replaced when a write is rejected, the idle ones too', async () => {
    const pool = createPool(database.url, { max: 3 });
    try {
      const connections = await Promise.all([pool.connect(), pool.connect(), pool.connect()]);
      for (const connection of connections)
        await connection.query('set session characteristics as transaction read only');
      for (const connection of connections) connection.release();
      const write = () =>
        inTransaction(pool, (connection) => connection.query('create table public.written as select 1'));
      const error: unknown = await write().catch((thrown: unknown) => thrown);
      expect([error, isDatabaseUnavailable(error)]).toEqual([
        expect.objectContaining({ code: '25006' }),
        true,
      ]);
      const isWritten = () =>
        write().then(
          () => true,
          () => false,
        );
      // A connection that is used again and again would never be closed because it is idle.
      await waitFor(isWritten, 'a write succeeds');
    } finally {
      await pool.end();
    }
  });
});
