import { inTransaction, type Pool } from '../../src/journal/database.ts';

/** Changes what is append-only, such as a config version into one that an older release stored. */
export const changeStored = (pool: Pool, statement: string, values: readonly unknown[]): Promise<void> =>
  inTransaction(pool, async (connection) => {
    await connection.query('set local session_replication_role = replica');
    await connection.query(statement, [...values]);
  });
