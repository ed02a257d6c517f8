import { spawn } from 'node:child_process';
import { closeSync, openSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { constants } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { asDiskFull, type DataFolder, LaunchError, writeFileAtomically } from './data_folder.ts';
import { identify, isRunning, type ProcessIdentity, readIdentity } from './lock.ts';
import type { Report } from './report.ts';

/** The order in which processes are stopped: each before the servers that it uses. */
const stopOrder = { worker: 0, server: 1, s3: 2, temporal: 3, postgresql: 4 } as const;

/** How to run a process of the stack. */
export interface ProgramSpec {
  /** Name of its log file and process file, with a number where several processes have the same program. */
  readonly name: keyof typeof stopOrder | `worker-${number}`;
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
  readonly uid?: number;
  readonly gid?: number;
  /** Signal for a graceful shutdown. */
  readonly stopSignal: NodeJS.Signals;
  /** Removes the files and processes that a killed predecessor left behind. */
  readonly beforeRestart?: () => Promise<void>;
}

/** How a process ended. */
interface Exit {
  /** A description such as "exited with code 1". */
  readonly how: string;
  /** Whether it ended as one that was told to stop. */
  readonly wasStopped: boolean;
}

/** A started process. */
export interface Child {
  readonly program: ProgramSpec;
  readonly pid: number;
  readonly logFile: string;
  /** Resolves when it has exited. */
  readonly exited: Promise<Exit>;
}

/** The child processes of one data folder. */
export interface ChildProcesses {
  start(program: ProgramSpec): Child;
  /** Stops all in order. After that no process can be started. */
  stopAll(): Promise<void>;
  /** Kills all at once. */
  killAll(): void;
  readonly stopping: boolean;
}

const stopTimeoutMs = 15_000;

/** Signals a process or its group, which includes the processes that it started. */
function signal(pid: number, name: NodeJS.Signals, target: 'process' | 'group'): void {
  try {
    process.kill(target === 'group' ? -pid : pid, name);
  } catch {
    // It has already exited.
  }
}

async function stopProcess(identity: ProcessIdentity, stopSignal: NodeJS.Signals): Promise<void> {
  if (!isRunning(identity)) return;
  signal(identity.pid, stopSignal, 'process');
  const deadline = performance.now() + stopTimeoutMs;
  while (isRunning(identity) && performance.now() < deadline) await delay(20);
  if (isRunning(identity)) signal(identity.pid, 'SIGKILL', 'group');
  while (isRunning(identity)) await delay(20);
}

const stopOrders = new Map<string, number>(Object.entries(stopOrder));
const stopOrderOf = (name: string) => stopOrders.get(name.replace(/-\d+$/, '')) ?? 0;
const byStopOrder = (left: string, right: string) => stopOrderOf(left) - stopOrderOf(right);

/**
 * Stops the processes that are recorded in the folder: those of a start that was killed before it could stop them, or
 * those of a finished test run.
 * @returns The names of those that were still running.
 */
export async function stopRecordedProcesses(folder: DataFolder): Promise<string[]> {
  const stopped: string[] = [];
  const names = readdirSync(folder.inside('processes')).filter((file) => file.endsWith('.json'));
  for (const name of names.map((file) => file.slice(0, -'.json'.length)).sort(byStopOrder)) {
    const file = folder.inside('processes', `${name}.json`);
    const identity = readIdentity(file);
    if (identity !== undefined && isRunning(identity)) {
      stopped.push(name);
      await stopProcess(identity, name === 'postgresql' ? 'SIGINT' : 'SIGTERM');
    }
    rmSync(file, { force: true });
  }
  return stopped;
}

/** The last lines of a log file. */
export function lastLines(logFile: string, count = 5): string {
  return readFileSync(logFile, 'utf8').trimEnd().split('\n').slice(-count).join('\n');
}

const stopSignals: ReadonlySet<string> = new Set(['SIGTERM', 'SIGINT', 'SIGHUP']);
/** A clean end, and the codes of a process that ends by such a signal before it has started. */
const stopCodes: ReadonlySet<number> = new Set([
  0,
  ...(['SIGTERM', 'SIGINT', 'SIGHUP'] as const).map((name) => 128 + constants.signals[name]),
]);

/** Starts and stops processes, each with a log file and a process file in the folder. */
export function createChildProcesses(folder: DataFolder): ChildProcesses {
  const running = new Map<number, Child>();
  let stopping = false;

  const start = (program: ProgramSpec): Child => {
    if (stopping) throw new Error('The stack is stopping.');
    const { name } = program;
    const logFile = folder.inside('logs', `${name}.log`);
    const log = openSync(logFile, 'a');
    const { command, args, env, uid, gid } = program;
    const childProcess = spawn(command, args, {
      // In a separate process group, Ctrl-C in a terminal reaches only the launcher, which stops all in order.
      detached: true,
      cwd: folder.path,
      stdio: ['ignore', log, log],
      ...(env && { env }),
      ...(uid !== undefined && { uid }),
      ...(gid !== undefined && { gid }),
    });
    closeSync(log);
    const processFile = folder.inside('processes', `${name}.json`);
    const pid = childProcess.pid ?? 0;
    const identity = identify(pid);
    const exited = new Promise<Exit>((resolve) => {
      childProcess.once('error', (error) =>
        resolve({ how: `could not be started: ${error.message}`, wasStopped: false }),
      );
      childProcess.once('exit', (code, by) =>
        resolve({
          how: by === null ? `exited with code ${String(code)}` : `was killed by ${by}`,
          wasStopped: by === null ? stopCodes.has(code ?? -1) : stopSignals.has(by),
        }),
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
      if (identity) await stopProcess(identity, program.stopSignal);
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

/**
 * Waits until a child process is ready.
 * @throws LaunchError when it exits or is not ready in time. The message includes the last lines of its log.
 */
export async function waitUntilReady(
  child: Child,
  isReady: () => Promise<boolean>,
  timeoutMs = 60_000,
): Promise<void> {
  const { name } = child.program;
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    if (await isReady().catch(() => false)) return;
    const exited = await Promise.race([child.exited, delay(25)]);
    const log = () => `Last lines of ${child.logFile}:\n${lastLines(child.logFile)}`;
    if (exited)
      throw (
        asDiskFull(lastLines(child.logFile), child.logFile) ??
        new LaunchError(`${name} ${exited.how} before it was ready. ${log()}`)
      );
    if (performance.now() > deadline)
      throw new LaunchError(`${name} was not ready after ${String(timeoutMs / 1_000)} s. ${log()}`);
  }
}

/** How a process is restarted. The delay doubles from the initial to the maximum one. */
interface SupervisionOptions {
  /** Called with each new process. */
  readonly onRestart?: (child: Child) => void;
  /**
   * Called when a process keeps exiting soon after its start. Without it the process is restarted indefinitely, and without
   * a growing delay when it was told to stop.
   */
  readonly onCrashLoop?: (child: Child, how: string) => void;
  readonly initialDelayMs?: number;
  readonly maxDelayMs?: number;
}

/** An exit after this time is not a rapid one and resets their count. */
const healthyMs = 20_000;
const maxRapidExits = 6;

/**
 * Restarts a process whenever it exits, with a growing delay, until the stack is stopped.
 * @returns Resolves when the supervision ends.
 */
export async function supervise(
  children: ChildProcesses,
  first: Child,
  report: Report,
  options: SupervisionOptions = {},
): Promise<void> {
  const { initialDelayMs = 200, maxDelayMs = 10_000 } = options;
  let child = first;
  let rapidExits = 0;
  for (;;) {
    const startedAt = performance.now();
    const { how, wasStopped } = await child.exited;
    if (children.stopping) return;
    const isNoCrash = performance.now() - startedAt > healthyMs || (wasStopped && !options.onCrashLoop);
    rapidExits = isNoCrash ? 1 : rapidExits + 1;
    if (options.onCrashLoop && rapidExits >= maxRapidExits) {
      options.onCrashLoop(child, how);
      return;
    }
    report(`${child.program.name} ${how}: restarting it`);
    await delay(Math.min(initialDelayMs * 2 ** (rapidExits - 1), maxDelayMs));
    await child.program.beforeRestart?.();
    // A function call, because the type checker assumes that the property has not changed.
    if (isStopping(children)) return;
    child = children.start(child.program);
    options.onRestart?.(child);
  }
}

const isStopping = (children: ChildProcesses): boolean => children.stopping;

/** Requests to shut down from outside the process. */
interface ShutdownSignals {
  /** Resolves at the first request: Ctrl-C, SIGTERM, or the exit of the parent process. */
  readonly first: Promise<void>;
}

/** Listens for shutdown requests. `onSecond` is called for every further request, to exit at once. */
export function listenForShutdown(onSecond: () => void): ShutdownSignals {
  let requested = false;
  const first = new Promise<void>((resolve) => {
    const request = () => {
      if (requested) onSecond();
      requested = true;
      resolve();
    };
    for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, request);
    process.once('disconnect', () => {
      if (!requested) request();
    });
  });
  // The IPC channel to the parent must not keep this process alive.
  process.channel?.unref();
  return { first };
}
