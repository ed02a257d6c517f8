import { createPool, type Pool } from '../journal/database.ts';
import { commandSettings, requireOneInstallation } from './running_stack.ts';

/** Runs `work` with a connection pool of the control database. @throws CliError when another installation runs here */
export async function withPool<Result>(work: (pool: Pool) => Promise<Result>): Promise<Result> {
  requireOneInstallation(process.env);
  const pool = createPool(commandSettings(process.env).DATABASE_URL, { max: 2 });
  try {
    return await work(pool);
  } finally {
    await pool.end();
  }
}
