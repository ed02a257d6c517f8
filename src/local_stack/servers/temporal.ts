import type { Program } from '../children.ts';
import type { DataFolder } from '../data_folder.ts';
import type { BuildableServer } from './built_server.ts';

/** Temporal's command line, which holds a server with its UI. */
export const temporalServer: BuildableServer = {
  name: 'temporal',
  title: 'Temporal',
  module: 'github.com/temporalio/cli/cmd/temporal',
  version: 'v1.5.1',
  minutes: 5,
  variable: 'TEMPORAL_ADDRESS',
};

/** The ports of Temporal on the loopback address: gRPC, its UI, its HTTP interface. */
export interface TemporalPorts {
  readonly temporal: number;
  readonly temporalUi: number;
  readonly temporalHttp: number;
}

/**
 * How to run Temporal on the loopback address.
 * @param durable whether its state survives a restart: kept in a file of the folder, else in memory.
 */
export function temporalProgram(
  command: string,
  folder: DataFolder,
  ports: TemporalPorts,
  durable: boolean,
): Program {
  const file = folder.inside('temporal.db');
  return {
    name: 'temporal',
    command,
    args: [
      'server',
      'start-dev',
      ...['--ip', '127.0.0.1', '--port', String(ports.temporal), '--http-port', String(ports.temporalHttp)],
      ...['--log-level', 'warn'],
      // A search attribute that was registered a moment ago can be used at once.
      ...['--dynamic-config-value', 'system.forceSearchAttributesCacheRefreshOnRead=true'],
      // Scheduled runs before those of backfills, and turns for the projects.
      ...['--dynamic-config-value', 'matching.enableFairness=true'],
      // The order holds within one partition of a task queue, and one is plenty for these rates.
      ...['--dynamic-config-value', 'matching.numTaskqueueReadPartitions=1'],
      ...['--dynamic-config-value', 'matching.numTaskqueueWritePartitions=1'],
      ...(durable
        ? [
            ...['--ui-port', String(ports.temporalUi), '--db-filename', file],
            // In write-ahead mode a crash of the process loses nothing, and a commit need not wait for the disk.
            ...['--sqlite-pragma', 'journal_mode=WAL', '--sqlite-pragma', 'synchronous=NORMAL'],
          ]
        : ['--headless']),
    ],
    // A person's settings of the temporal command must not reach this server.
    // The garbage collector of Go runs half as often, for 70 MB: a tenth of the CPU time that a run costs this server.
    env: { GOGC: '200', ...process.env, TEMPORAL_ADDRESS: undefined, TEMPORAL_NAMESPACE: undefined },
    stopSignal: 'SIGTERM',
  };
}

/** Whether Temporal answers and has made its namespace. */
export async function temporalAnswers(ports: TemporalPorts): Promise<boolean> {
  const address = `http://127.0.0.1:${String(ports.temporalHttp)}/api/v1/namespaces/default`;
  const answer = await fetch(address, { signal: AbortSignal.timeout(2_000) });
  return answer.ok;
}
