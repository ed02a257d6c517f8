import { randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';
import { createChildren, type Child } from '../../src/local_stack/children.ts';
import { openDataFolder } from '../../src/local_stack/data_folder.ts';
import { takeLock } from '../../src/local_stack/lock.ts';
import { keepPorts } from '../../src/local_stack/ports.ts';
import { untilReady } from '../../src/local_stack/ready.ts';
import { temporalAnswers, temporalProgram } from '../../src/local_stack/servers/temporal.ts';
import { fromSetUp } from '../setup/environment.ts';
import { temporalCommand } from '../setup/temporal_command.ts';

/** A Temporal server of a test's own, with its database in a file. */
export interface OwnTemporal {
  readonly address: string;
  /** Ends it as a crash of its machine would. */
  kill(): Promise<void>;
  /** Removes its database. */
  loseDatabase(): void;
  /** Starts it at the same address with what its database holds, and waits until it answers. */
  start(): Promise<void>;
  /** Ends it and removes its folder. */
  close(): Promise<void>;
}

/** Starts the server, in a folder beside that of the run of Jest, so that a later run ends what a killed one leaves. */
export async function startOwnTemporal(): Promise<OwnTemporal> {
  const folder = openDataFolder(`${fromSetUp('EXPORTD_TEST_FOLDER')}-${randomUUID()}`);
  const unlock = takeLock(folder.inside('lock'));
  const children = createChildren(folder);
  const ports = await keepPorts(folder.inside('ports.json'), [
    'temporal',
    'temporalUi',
    'temporalHttp',
  ] as const);
  const program = temporalProgram(await temporalCommand(), folder, ports, true);
  let child: Child | undefined;
  const start = async () => {
    child = children.start(program);
    await untilReady(child, () => temporalAnswers(ports));
  };
  await start();
  return {
    address: `127.0.0.1:${ports.temporal}`,
    start,
    kill: async () => {
      if (!child) return;
      process.kill(child.pid, 'SIGKILL');
      await child.exited;
    },
    loseDatabase: () => {
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
