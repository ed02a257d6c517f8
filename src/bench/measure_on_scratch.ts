import { loadavg } from 'node:os';
import { createPool, type Pool } from '../journal/database.ts';
import type { Report } from '../local_stack/report.ts';
import { describeMachine } from './describe_machine.ts';
import type { Measurement } from './result.ts';
import { createScratchStack, type ScratchStack } from './scratch_stack.ts';
import { rounded } from './statistics.ts';

/** What every benchmark measures on. */
export interface Scratch {
  readonly stack: ScratchStack;
  /** A few connections to the scratch database. */
  readonly pool: Pool;
  readonly startedAt: Date;
}

/** Where a benchmark puts its servers, which are deleted afterwards. */
export interface ScratchOptions {
  /** A dedicated folder. */
  readonly folder: string;
  /** Whether to use the servers that the environment names. */
  readonly useEnvironment: boolean;
}

const maxConnections = 4;

/**
 * Runs a benchmark on scratch servers, and deletes everything that it created.
 * @returns its result, with when and where it was measured
 * @throws LaunchError when a server does not start, or the error of the benchmark
 */
export async function measureOnScratch<Result>(
  { folder, useEnvironment }: ScratchOptions,
  report: Report,
  measure: (scratch: Scratch) => Promise<Result>,
): Promise<Measurement & Result> {
  const startedAt = new Date();
  const loadBefore = currentLoad();
  const stack = await createScratchStack(folder, { useEnvironment }, report);
  const pool = createPool(stack.databaseUrl, { max: maxConnections });
  try {
    const machine = await describeMachine(pool);
    const result = await measure({ stack, pool, startedAt });
    return {
      started_at: startedAt.toISOString(),
      seconds: rounded((Date.now() - startedAt.getTime()) / 1_000),
      machine,
      load: { before: loadBefore, after: currentLoad() },
      ...result,
    };
  } finally {
    await pool.end();
    report('Deleting the scratch data');
    await stack.remove();
  }
}

const currentLoad = (): number => rounded(loadavg()[0] ?? 0);
