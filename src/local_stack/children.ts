import { spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { writeFileAtomically, type DataFolder } from './data_folder.ts';
import { identify, isRunning, readIdentity, type ProcessIdentity } from './process_identity.ts';

/** The order in which a stack's processes are stopped: those that use others before those that are used. */
const stopOrder = { worker: 0, server: 1, s3: 2, temporal: 3, postgresql: 4 } as const;

/** How to run one process of the stack. */
export interface Program {
  /** Names its log and its process file. */
  readonly name: keyof typeof stopOrder;
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
  readonly uid?: number;
  readonly gid?: number;
  /** What asks it to end in good order. */
  readonly stopSignal: NodeJS.Signals;
  /** Removes what it left behind where it was killed. */
  readonly beforeRestart?: () => Promise<void>;
}

/** A process that was started. */
export interface Child {
  readonly program: Program;
  readonly pid: number;
  readonly logFile: string;
  /** Resolves when it has ended, to how it ended. */
  readonly exited: Promise<string>;
}

/** The processes of one data folder. */
export interface Children {
  start(program: Program): Child;
  /** Ends all, in order; nothing can be started afterwards. */
  stopAll(): Promise<void>;
  /** Ends all at once, by force. */
  killAll(): void;
  readonly stopping: boolean;
}

const stopPatienceMs = 15_000;

/** Signals a process and those it started in its group. */
function signal(pid: number, name: NodeJS.Signals, target: 'process' | 'group'): void {
  try {
    process.kill(target === 'group' ? -pid : pid, name);
  } catch {
    // It has ended meanwhile, which is what was wanted.
  }
}

async function end(identity: ProcessIdentity, stopSignal: NodeJS.Signals): Promise<void> {
  if (!isRunning(identity)) return;
  signal(identity.pid, stopSignal, 'process');
  const deadline = performance.now() + stopPatienceMs;
  while (isRunning(identity) && performance.now() < deadline) await delay(20);
  if (isRunning(identity)) signal(identity.pid, 'SIGKILL', 'group');
  while (isRunning(identity)) await delay(20);
}

const stopOrders = new Map<string, number>(Object.entries(stopOrder));
const byStopOrder = (left: string, right: string) =>
  (stopOrders.get(left) ?? 0) - (stopOrders.get(right) ?? 0);

/**
 * Ends the processes that the folder knows of: those of a start that was killed before it could end them, or, from
 * another process than the one that started them, those of a run that is over.
 * @returns the names of those that were still running.
 */
export async function endRecordedProcesses(folder: DataFolder): Promise<string[]> {
  const ended: string[] = [];
  const names = readdirSync(folder.inside('processes')).filter((file) => file.endsWith('.json'));
  for (const name of names.map((file) => file.slice(0, -'.json'.length)).sort(byStopOrder)) {
    const file = folder.inside('processes', `${name}.json`);
    const identity = readIdentity(file);
    if (identity !== undefined && isRunning(identity)) {
      ended.push(name);
      await end(identity, name === 'postgresql' ? 'SIGINT' : 'SIGTERM');
    }
    rmSync(file, { force: true });
  }
  return ended;
}

/** The last lines of a log, for a message that says why a process ended. */
export function lastLines(logFile: string, count = 5): string {
  return readFileSync(logFile, 'utf8').trimEnd().split('\n').slice(-count).join('\n');
}

/** Starts processes, each with its log and its process file in the folder, and ends them. */
export function createChildren(folder: DataFolder): Children {
  const running = new Map<number, Child>();
  let stopping = false;

  const start = (program: Program): Child => {
    if (stopping) throw new Error('The stack is being stopped.');
    const logFile = folder.inside('logs', `${program.name}.log`);
    const log = openSync(logFile, 'a');
    const { command, args, env, uid, gid } = program;
    const process_ = spawn(command, args, {
      // Of its own group: Ctrl-C in a terminal reaches the launcher alone, which then ends all in order.
      detached: true,
      cwd: folder.path,
      stdio: ['ignore', log, log],
      ...(env && { env }),
      ...(uid !== undefined && { uid }),
      ...(gid !== undefined && { gid }),
    });
    closeSync(log);
    const processFile = folder.inside('processes', `${program.name}.json`);
    const pid = process_.pid ?? 0;
    const identity = identify(pid);
    const exited = new Promise<string>((resolve) => {
      process_.once('error', (error) => resolve(`could not be started: ${error.message}`));
      process_.once('exit', (code, by) =>
        resolve(by === null ? `ended with code ${String(code)}` : `was ended by ${by}`),
      );
    }).finally(() => {
      running.delete(pid);
      if (readIdentity(processFile)?.pid === pid) rmSync(processFile, { force: true });
    });
    const child: Child = { program, pid, logFile, exited };
    if (identity) {
      running.set(pid, child);
      writeFileAtomically(processFile, JSON.stringify(identity));
    }
    return child;
  };

  const stopAll = async () => {
    stopping = true;
    const inOrder = [...running.values()].sort((a, b) => byStopOrder(a.program.name, b.program.name));
    for (const { pid, program, exited } of inOrder) {
      const identity = identify(pid);
      if (identity) await end(identity, program.stopSignal);
      await exited;
    }
  };

  const killAll = () => {
    stopping = true;
    for (const pid of running.keys()) signal(pid, 'SIGKILL', 'group');
  };

  return {
    start,
    stopAll,
    killAll,
    get stopping() {
      return stopping;
    },
  };
}
