import { randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';
import { type Child, createChildProcesses, waitUntilReady } from '../../src/local_stack/child_processes.ts';
import { openDataFolder } from '../../src/local_stack/data_folder.ts';
import { acquireLock } from '../../src/local_stack/lock.ts';
import { assignPorts } from '../../src/local_stack/ports.ts';
import { isTemporalReady } from '../../src/local_stack/servers/start_servers.ts';
import { temporalProgram } from '../../src/local_stack/servers/temporal.ts';
import { searchAttributeNames } from '../../src/temporal/search_attributes.ts';
import { fromSetUp } from '../setup/environment.ts';
import { temporalCommand } from '../setup/temporal_command.ts';

/** A dedicated Temporal server of a test, with its database in a file. */
export interface OwnTemporal {
  readonly address: string;
  /** Kills it, as a crash of its machine would. */
  kill(): Promise<void>;
  /** The id of its process. */
  pid(): number;
  /** Deletes its database. */
  deleteDatabase(): void;
  /** Starts it at the same address with the same database file, and waits until it is ready. */
  start(): Promise<void>;
  /** Stops it and deletes its folder. */
  close(): Promise<void>;
}

/** Starts the server in a folder beside that of the Jest run: a later run stops the processes of a killed one. */
export async function startOwnTemporal(): Promise<OwnTemporal> {
  const folder = openDataFolder(`${fromSetUp('EXPORTD_TEST_FOLDER')}-${randomUUID()}`);
  const unlock = acquireLock(folder.inside('lock'));
  const children = createChildProcesses(folder);
  const ports = await assignPorts(folder.inside('ports.json'), ['temporal', 'temporalUi'] as const);
  const program = temporalProgram(await temporalCommand(), folder, ports, {
    durable: true,
    searchAttributes: searchAttributeNames,
  });
  let child: Child | undefined;
  const start = async () => {
    child = children.start(program);
    await waitUntilReady(child, () => isTemporalReady(ports));
  };
  await start();
  return {
    address: `127.0.0.1:${ports.temporal}`,
    start,
    pid: () => child?.pid ?? 0,
    kill: async () => {
      if (!child) return;
      process.kill(child.pid, 'SIGKILL');
      await child.exited;
    },
    deleteDatabase: () => {
      for (const suffix of ['', '-wal', '-shm'])
        rmSync(folder.inside(`temporal.db${suffix}`), { force: true });
    },
    close: async () => {
      await children.stopAll();
      unlock();
      rmSync(folder.path, { recursive: true, force: true });
    },
  };
}
