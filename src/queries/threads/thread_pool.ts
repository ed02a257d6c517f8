import { Worker } from 'node:worker_threads';
import type { FromThread, ToThread } from './thread_messages.ts';

/** A thread that computes queries. */
export interface QueryThread {
  send(message: ToThread): void;
  /** Set while a task runs. */
  receive: (message: FromThread) => void;
  /** Called if the thread ends while a task runs; `cause` is its error. */
  fail: (cause: unknown) => void;
  terminate(): Promise<unknown>;
}

/** Threads that each run one task at a time. */
export interface ThreadPool {
  /** Runs a task on an idle thread, or on a new one; waits while all are busy. @throws the reason of the signal */
  use<Result>(signal: AbortSignal, task: (thread: QueryThread) => Promise<Result>): Promise<Result>;
  /** Ends all threads. Their tasks fail. */
  close(): Promise<void>;
}

export interface ThreadPoolOptions {
  readonly maxThreads: number;
  /** Maximum heap of a thread, which ends when it needs more. */
  readonly heapBytes: number;
  readonly program: URL;
  /** `workerData` of the program. */
  readonly data: unknown;
}

/** The pool was closed. */
export class ThreadPoolClosed extends Error {
  override readonly name = 'ThreadPoolClosed';
}

const outsideTask = (): void => undefined;

/** Starts a thread when it is first needed, and keeps it: its start takes longer than most queries. */
export function createThreadPool({ maxThreads, heapBytes, program, data }: ThreadPoolOptions): ThreadPool {
  const threads = new Set<QueryThread>();
  const idle: { readonly thread: QueryThread; readonly worker: Worker }[] = [];
  const waiting = new Set<() => void>();
  let closed = false;

  function start(): { thread: QueryThread; worker: Worker } {
    const worker = new Worker(program, {
      name: 'query',
      workerData: data,
      resourceLimits: { maxOldGenerationSizeMb: Math.ceil(heapBytes / 2 ** 20) },
    });
    const thread: QueryThread = {
      send: (message) => worker.postMessage(message),
      receive: outsideTask,
      fail: outsideTask,
      terminate: () => worker.terminate(),
    };
    let cause: unknown = new Error('A thread of queries has ended.');
    worker.on('message', (message: FromThread) => {
      thread.receive(message);
    });
    worker.on('error', (error: unknown) => {
      cause = error;
    });
    worker.on('exit', () => {
      threads.delete(thread);
      const index = idle.findIndex((one) => one.thread === thread);
      if (index >= 0) idle.splice(index, 1);
      thread.fail(cause);
      wakeNext();
    });
    threads.add(thread);
    return { thread, worker };
  }

  const wakeNext = (): void => {
    const [next] = waiting;
    if (next) waiting.delete(next);
    next?.();
  };

  /** Waits until a thread is idle or may be started. */
  async function acquire(signal: AbortSignal): Promise<{ thread: QueryThread; worker: Worker }> {
    for (;;) {
      if (closed || signal.aborted) {
        // It may have been woken for a thread that it no longer needs.
        wakeNext();
        signal.throwIfAborted();
        throw new ThreadPoolClosed('The threads of queries have been closed.');
      }
      const free = idle.pop() ?? (threads.size < maxThreads ? start() : undefined);
      if (free) return free;
      const { promise, resolve } = Promise.withResolvers<undefined>();
      const wake = () => resolve(undefined);
      waiting.add(wake);
      signal.addEventListener('abort', wake);
      await promise;
      waiting.delete(wake);
      signal.removeEventListener('abort', wake);
    }
  }

  return {
    async use(signal, task) {
      const { thread, worker } = await acquire(signal);
      worker.ref();
      try {
        return await task(thread);
      } finally {
        thread.receive = outsideTask;
        thread.fail = outsideTask;
        if (threads.has(thread)) {
          // An idle thread does not keep its process alive.
          worker.unref();
          idle.push({ thread, worker });
        }
        wakeNext();
      }
    },
    async close() {
      closed = true;
      for (const wake of waiting) wake();
      await Promise.all([...threads].map((thread) => thread.terminate()));
    },
  };
}
