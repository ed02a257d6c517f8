import type { Pool } from '../../src/journal/database.ts';

/** Rolls back what a failed test has prepared. Otherwise its locks would block everything after it. */
export async function rollbackPrepared(pool: Pool): Promise<void> {
  const { rows } = await pool.query<{ statement: string }>(
    `select format('rollback prepared %L', gid) as statement from pg_prepared_xacts where database = current_database()`,
  );
  for (const { statement } of rows) await pool.query(statement);
}
