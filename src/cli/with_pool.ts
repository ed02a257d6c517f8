import { createPool, type Pool } from '../journal/database.ts';
import { commandSettings } from './running_stack.ts';

/** Works on the control database and closes it. */
export async function withPool<Result>(work: (pool: Pool) => Promise<Result>): Promise<Result> {
  const pool = createPool(commandSettings(process.env).DATABASE_URL, { max: 2 });
  try {
    return await work(pool);
  } finally {
    await pool.end();
  }
}
