import { availableParallelism, cpus, totalmem } from 'node:os';
import type { Pool } from '../journal/database.ts';
import type { Measurement } from './result.ts';

/** The machine that the results are valid for. */
export async function describeMachine(pool: Pool): Promise<Measurement['machine']> {
  const { rows } = await pool.query<{ version: string }>(
    `select current_setting('server_version') as version`,
  );
  return {
    cpus: availableParallelism(),
    cpu_model: cpus()[0]?.model ?? 'unknown',
    memory_bytes: totalmem(),
    platform: `${process.platform} ${process.arch}`,
    node: process.version,
    postgresql: rows[0]?.version ?? 'unknown',
  };
}
