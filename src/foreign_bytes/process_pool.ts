import { type ChildProcess, fork } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { constants, setPriority } from 'node:os';
import type { FromProcess, ToProcess } from './messages.ts';

/** A process of a pool. */
export interface PooledProcess {
  /** Does nothing once the process has ended. */
  send(message: ToProcess): void;
  /** Set while a task runs. */
  receive: (message: FromProcess) => void;
  /** Called if the process ends while a task runs. */
  fail: (end: ProcessEnd) => void;
  /**
   * Starts to measure the processor time that it uses. Where the system does not tell, all time counts.
   * @returns what reads it, in milliseconds
   */
  startClock(): () => number;
  kill(): void;
}

/** How a process ended. */
export interface ProcessEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** Processes that each run one task at a time. */
interface ProcessPool {
  /**
   * Runs a task in an idle process, or in a new one once it is ready. The caller sees to it that there are not too many.
   * @throws Error if the new process ends first
   */
  use<Result>(task: (pooled: PooledProcess) => Promise<Result>): Promise<Result>;
}

/** How long an idle process stays, in milliseconds: its start takes longer than most tasks, and each takes 50 MB. */
const idleMs = 10_000;

/** V8 aborts a process that needs more than its heap, and the kernel kills one for which there is no memory. */
export const isOutOfMemory = ({ code, signal }: ProcessEnd): boolean =>
  signal === 'SIGABRT' || signal === 'SIGKILL' || code === 134 || code === 5;

const outsideTask = (): void => undefined;

/** What a process gets of this one's environment. With compiled modules its start takes a third of the CPU time. */
const environment = (): NodeJS.ProcessEnv =>
  Object.fromEntries(
    ['TMPDIR', 'NODE_COMPILE_CACHE'].flatMap((name) => {
      const value = process.env[name];
      return value === undefined ? [] : [[name, value]];
    }),
  );

/** Where processors are busy, exports go first: bytes of others are read in the time that they leave. */
function yieldProcessor({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    setPriority(pid, constants.priority.PRIORITY_BELOW_NORMAL);
  } catch {
    // It has ended already, which its exit tells.
  }
}

/** In `/proc`, Linux counts time in hundredths of a second for every program. */
const tickMs = 10;

function processorMsOf({ pid }: ChildProcess): number | undefined {
  try {
    const status = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // The second field is the name of the program in parentheses. Those of the time as user and as system are 12 and 13 after it.
    const [user, system] = status.slice(status.lastIndexOf(')')).split(' ').slice(12, 14).map(Number);
    return user === undefined || system === undefined ? undefined : (user + system) * tickMs;
  } catch {
    // Not Linux, or it has ended.
    return undefined;
  }
}

/** @param heapBytes maximum heap of a process, which ends when it needs more */
export function createProcessPool({
  program,
  heapBytes,
}: {
  readonly program: string;
  readonly heapBytes: number;
}): ProcessPool {
  interface Started {
    readonly pooled: PooledProcess;
    readonly child: ChildProcess;
    readonly ready: Promise<undefined>;
    /** Ends it when it has been idle for long enough. */
    idleTimer?: NodeJS.Timeout;
  }
  const alive = new Set<PooledProcess>();
  const idle: Started[] = [];

  function start(): Started {
    const child = fork(program, {
      execArgv: [`--max-old-space-size=${Math.ceil(heapBytes / 2 ** 20)}`],
      // It has no use for the secrets of this process, and what it prints is not for people.
      env: environment(),
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
      serialization: 'advanced',
    });
    yieldProcessor(child);
    const pooled: PooledProcess = {
      // It may have ended a moment ago: its exit is what counts.
      send: (message) => void child.send(message, outsideTask),
      receive: outsideTask,
      fail: outsideTask,
      startClock: () => {
        const startedAt = performance.now();
        const before = processorMsOf(child);
        return () => {
          const now = processorMsOf(child);
          return before === undefined || now === undefined ? performance.now() - startedAt : now - before;
        };
      },
      kill: () => void child.kill('SIGKILL'),
    };
    const ready = Promise.withResolvers<undefined>();
    child.on('message', (message) => {
      const received = message as FromProcess;
      if (received.type === 'ready') ready.resolve(undefined);
      else pooled.receive(received);
    });
    const end = (code: number | null, signal: NodeJS.Signals | null): void => {
      if (!alive.delete(pooled)) return;
      const index = idle.findIndex((one) => one.pooled === pooled);
      if (index >= 0) idle.splice(index, 1);
      ready.reject(new Error(`A process that reads foreign bytes did not start (${signal ?? code}).`));
      pooled.fail({ code, signal });
    };
    child.on('exit', end);
    child.on('error', () => {
      end(null, null);
    });
    alive.add(pooled);
    return { pooled, child, ready: ready.promise };
  }

  /** An idle process does not keep this one alive, and ends after a while. */
  const rest = (started: Started): void => {
    started.child.unref();
    started.child.channel?.unref();
    idle.push(started);
    started.idleTimer = setTimeout(() => {
      const index = idle.indexOf(started);
      if (index < 0) return;
      idle.splice(index, 1);
      started.pooled.kill();
    }, idleMs).unref();
  };

  return {
    async use(task) {
      const started = idle.pop() ?? start();
      const { pooled, child, ready, idleTimer } = started;
      clearTimeout(idleTimer);
      child.ref();
      child.channel?.ref();
      try {
        await ready;
        return await task(pooled);
      } finally {
        pooled.receive = outsideTask;
        pooled.fail = outsideTask;
        if (alive.has(pooled)) rest(started);
      }
    },
  };
}
