import { createPool, type Pool } from '../journal/database.ts';
import { commandSettings } from './running_stack.ts';

/** Runs `work` with a connection pool of the control database. */
export async function withPool<Result>(work: (pool: Pool) => Promise<Result>): Promise<Result> {
  const pool = createPool(commandSettings(process.env).DATABASE_URL, { max: 2 });
  try {
    return await work(pool);
  } finally {
    await pool.end();
  }
}
