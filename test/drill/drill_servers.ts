import { randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';
import { createChildProcesses, type Child } from '../../src/local_stack/child_processes.ts';
import { openDataFolder } from '../../src/local_stack/data_folder.ts';
import { acquireLock } from '../../src/local_stack/lock.ts';
import { startServers, type ObjectStore } from '../../src/local_stack/servers/start_servers.ts';
import { fromSetUp } from '../setup/environment.ts';

export type ServerName = 'postgresql' | 'temporal' | 's3';

/** Servers of a drill, which it stops and starts while exportd works. */
export interface DrillServers {
  readonly databaseUrl: string;
  readonly temporalAddress: string;
  readonly objectStore: ObjectStore;
  /** Ends a server with the signal, waits, and starts it again with its data at the same address. */
  restart(name: ServerName, signal: NodeJS.Signals, downtime: () => Promise<void>): Promise<void>;
  /** Stops the servers and deletes their data. */
  close(): Promise<void>;
}

/** Starts servers that keep their data, in a folder beside that of the Jest run. */
export async function startDrillServers(): Promise<DrillServers> {
  const folder = openDataFolder(`${fromSetUp('EXPORTD_TEST_FOLDER')}-${randomUUID()}`);
  const unlock = acquireLock(folder.inside('lock'));
  const children = createChildProcesses(folder);
  const running = new Map<string, Child>();
  const servers = await startServers(
    folder,
    children,
    { durable: true, useEnvironment: false, onStarted: (child) => running.set(child.program.name, child) },
    () => undefined,
  );
  return {
    databaseUrl: await servers.postgresql,
    temporalAddress: (await servers.temporal).address,
    objectStore: await servers.objectStore,
    restart: async (name, signal, downtime) => {
      const child = running.get(name);
      if (!child) throw new Error(`${name} does not run.`);
      process.kill(child.pid, signal);
      await child.exited;
      await downtime();
      await child.program.beforeRestart?.();
      running.set(name, children.start(child.program));
    },
    close: async () => {
      await children.stopAll();
      unlock();
      rmSync(folder.path, { recursive: true, force: true });
    },
  };
}
