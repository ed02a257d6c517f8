import type { ProgramSpec } from '../child_processes.ts';
import type { DataFolder } from '../data_folder.ts';
import type { ServerProgram } from './find_server.ts';
import type { Release } from './release.ts';

const version = '1.5.1';

const release = (platform: string, sha256: string): Release => ({
  url: `https://github.com/temporalio/cli/releases/download/v${version}/temporal_cli_${version}_${platform}.tar.gz`,
  sha256,
  executable: 'temporal',
});

/** The Temporal CLI, which includes a development server with UI. */
export const temporalServer: ServerProgram = {
  name: 'temporal',
  title: 'Temporal',
  module: 'github.com/temporalio/cli/cmd/temporal',
  version: `v${version}`,
  // The README of this folder says where these checksums come from.
  releases: {
    'linux-x64': release('linux_amd64', 'ddc95e08b0b076efd4ea9733a3f488eb7d2be875f8834e616cd2a37358b4852d'),
    'linux-arm64': release('linux_arm64', 'bd1b0db9f18b051026de8bf6cc1505f2510f14bbb7a8b9a4a91fff46c77454f5'),
    'darwin-x64': release('darwin_amd64', 'bbb73e2a31135abe50a1f1cdb35030c42961df618e8ce9c60ae89f201540c5d9'),
    'darwin-arm64': release(
      'darwin_arm64',
      'cca01b7ea35ad56e2a328d9ae596bf716bd22313ef63c7a761c88354457c2415',
    ),
  },
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
