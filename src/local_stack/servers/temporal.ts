import type { ProgramSpec } from '../child_processes.ts';
import type { DataFolder } from '../data_folder.ts';
import type { BuildableServer } from './built_server.ts';

/** The Temporal CLI, which includes a development server with UI. */
export const temporalServer: BuildableServer = {
  name: 'temporal',
  title: 'Temporal',
  module: 'github.com/temporalio/cli/cmd/temporal',
  version: 'v1.5.1',
  buildMinutes: 5,
  addressVariable: 'TEMPORAL_ADDRESS',
};

/** Ports of Temporal on the loopback address: gRPC, UI and HTTP API. */
export interface TemporalPorts {
  readonly temporal: number;
  readonly temporalUi: number;
  readonly temporalHttp: number;
}

/**
 * How to run Temporal on the loopback address.
 * @param durable Whether its state survives a restart: in a file of the folder, otherwise in memory.
 */
export function temporalProgram(
  command: string,
  folder: DataFolder,
  ports: TemporalPorts,
  durable: boolean,
): ProgramSpec {
  const file = folder.inside('temporal.db');
  return {
    name: 'temporal',
    command,
    args: [
      'server',
      'start-dev',
      ...['--ip', '127.0.0.1', '--port', String(ports.temporal), '--http-port', String(ports.temporalHttp)],
      ...['--log-level', 'warn'],
      // New search attributes can be used at once.
      ...['--dynamic-config-value', 'system.forceSearchAttributesCacheRefreshOnRead=true'],
      // Scheduled runs have priority over backfills, and projects take turns.
      ...['--dynamic-config-value', 'matching.enableFairness=true'],
      // Priorities apply within a partition of a task queue, and one is enough for these rates.
      ...['--dynamic-config-value', 'matching.numTaskqueueReadPartitions=1'],
      ...['--dynamic-config-value', 'matching.numTaskqueueWritePartitions=1'],
      ...(durable
        ? [
            ...['--ui-port', String(ports.temporalUi), '--db-filename', file],
            // In WAL mode a crash of the process loses nothing, and commits need not wait for the disk.
            ...['--sqlite-pragma', 'journal_mode=WAL', '--sqlite-pragma', 'synchronous=NORMAL'],
          ]
        : ['--headless']),
    ],
    // Settings of the user's temporal command must not reach this server. GOGC=200 makes the garbage collector run half
    // as often: 70 MB more memory, a tenth less CPU time per run.
    env: { GOGC: '200', ...process.env, TEMPORAL_ADDRESS: undefined, TEMPORAL_NAMESPACE: undefined },
    stopSignal: 'SIGTERM',
  };
}

/** Whether Temporal is ready and has created its namespace. */
export async function isTemporalReady(ports: TemporalPorts): Promise<boolean> {
  const address = `http://127.0.0.1:${String(ports.temporalHttp)}/api/v1/namespaces/default`;
  const response = await fetch(address, { signal: AbortSignal.timeout(2_000) });
  return response.ok;
}
