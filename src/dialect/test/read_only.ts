import type { Pool, PoolClient } from 'pg';

/** Runs `work` in a read-only transaction with settings (`set local …`), as production runs queries. */
export async function inReadOnlyTransaction<Result>(
  pool: Pool,
  settings: string,
  work: (connection: PoolClient) => Promise<Result>,
): Promise<Result> {
  const connection = await pool.connect();
  try {
    await connection.query(`begin read only; ${settings}`);
    return await work(connection);
  } finally {
    await connection.query('rollback').then(
      () => connection.release(),
      (error: unknown) => connection.release(error instanceof Error ? error : true),
    );
  }
}
