import { findOnPath } from '../local_stack/servers/executable.ts';
import type { FloorResult } from './result.ts';
import { discardCopy, psqlEnvironment } from './export_statements.ts';
import type { Measurement } from './statistics.ts';
import { runTimed } from './timed_shell.ts';

/** The client of the floor: psql, the fastest, or without it the driver of exportd. */
export const floorClient = (): FloorResult['client'] =>
  findOnPath('psql') !== undefined && findOnPath('bash') !== undefined ? 'psql' : 'pg';

/** Reads all rows in order as binary COPY and discards them. */
export async function measureFloor(
  databaseUrl: string,
  copyBinary: string,
  signal: AbortSignal,
): Promise<Measurement> {
  if (floorClient() === 'psql') {
    const environment = { ...psqlEnvironment(databaseUrl), COPY: copyBinary };
    return runTimed('psql --no-psqlrc --quiet --command "$COPY" > /dev/null', environment, signal);
  }
  const [startedAt, usage] = [performance.now(), process.cpuUsage()];
  await discardCopy(databaseUrl, copyBinary);
  const { user, system } = process.cpuUsage(usage);
  return { seconds: (performance.now() - startedAt) / 1_000, cpu_seconds: (user + system) / 1e6 };
}
