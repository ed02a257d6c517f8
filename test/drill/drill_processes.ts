import { spawn, type ChildProcess } from 'node:child_process';
import { createWriteStream, mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const root = join(import.meta.dirname, '../..');

/** exportd's processes of a drill. Those that exit by themselves are started again, as a supervisor would. */
export interface DrillProcesses {
  /** Ends a process with the signal and starts it again, with the environment as it is then. */
  restart(name: string, signal: NodeJS.Signals): Promise<void>;
  /** How often a process exited without being told to. */
  readonly crashes: () => number;
  stop(): Promise<void>;
}

const exitOf = (child: ChildProcess): Promise<void> =>
  child.exitCode !== null || child.signalCode !== null
    ? Promise.resolve()
    : new Promise((resolve) => child.once('exit', () => resolve()));

/**
 * Starts a server and workers.
 * @param environmentOf the settings of a process that is started now
 */
export function startDrillProcesses(
  workers: number,
  environmentOf: () => Readonly<Record<string, string>>,
): DrillProcesses {
  const logs = join(tmpdir(), 'exportd-drill-logs');
  mkdirSync(logs, { recursive: true });
  const children = new Map<string, ChildProcess>();
  const told = new Set<ChildProcess>();
  let crashes = 0;
  let stopping = false;
  const start = (name: string): void => {
    const command = name === 'server' ? 'server' : 'worker';
    const child = spawn(process.execPath, [join(root, 'src/cli/main.ts'), command], {
      env: { ...environmentOf() },
      stdio: ['ignore', 'pipe', 'pipe'],
      cwd: root,
    });
    const log = createWriteStream(join(logs, `${name}.log`), { flags: 'a' });
    child.stdout.pipe(log, { end: false });
    child.stderr.pipe(log, { end: false });
    children.set(name, child);
    child.once('exit', () => {
      if (stopping || told.has(child)) return;
      crashes += 1;
      start(name);
    });
  };
  const end = async (child: ChildProcess, signal: NodeJS.Signals): Promise<void> => {
    told.add(child);
    child.kill(signal);
    await exitOf(child);
  };
  const names = ['server', ...Array.from({ length: workers }, (_, number) => `worker-${number}`)];
  for (const name of names) start(name);
  return {
    restart: async (name, signal) => {
      const child = children.get(name);
      if (child) await end(child, signal);
      if (!stopping) start(name);
    },
    crashes: () => crashes,
    stop: async () => {
      stopping = true;
      await Promise.all([...children.values()].map((child) => end(child, 'SIGTERM')));
    },
  };
}
