import { isMarkedAsUntransferable, Worker } from 'node:worker_threads';
import type { EncodingReply, EncodingResult, EncodingTask } from './encoding_task.ts';
import { MalformedBlock, UnencodableRow } from './unencodable_row.ts';

/**
 * The thread that encoded a block exited, or the pool was closed. The block is lost, but can be read and encoded
 * again.
 */
export class EncoderThreadExited extends Error {
  override readonly name = 'EncoderThreadExited';
}

/** Threads that encode blocks. */
export interface EncoderThreads {
  run(task: Omit<EncodingTask, 'id'>): Promise<EncodingResult>;
  close(): Promise<void>;
}

/** The block that a thread is encoding, and the next one, so that it never waits. */
const maxTasksPerThread = 2;

interface WaitingTask {
  readonly task: EncodingTask;
  readonly resolve: (result: EncodingResult) => void;
  readonly reject: (error: Error) => void;
}

interface Thread {
  readonly worker: Worker;
  readonly tasks: Map<number, WaitingTask>;
}

const encoderProgram = new URL('./encoder_thread.ts', import.meta.url);

/**
 * Starts up to `count` threads, each when there is work and no idle thread. A thread that exits is replaced the same
 * way.
 */
export function startEncoderThreads(count: number, program: URL = encoderProgram): EncoderThreads {
  const threads = new Set<Thread>();
  const waiting: WaitingTask[] = [];
  let lastId = 0;
  let closed = false;

  function start(): Thread {
    const worker = new Worker(program, { name: 'encoder' });
    const thread: Thread = { worker, tasks: new Map() };
    let cause = 'it was stopped';
    worker.on('message', (reply: EncodingReply) => {
      const pending = thread.tasks.get(reply.id);
      thread.tasks.delete(reply.id);
      if (reply.outcome === 'encoded') pending?.resolve(reply);
      else pending?.reject(errorOf(reply));
      dispatch();
    });
    worker.on('error', (error) => (cause = messageOf(error)));
    worker.on('exit', () => {
      threads.delete(thread);
      for (const { reject } of thread.tasks.values())
        reject(new EncoderThreadExited(`An encoder thread exited: ${cause}.`));
      dispatch();
    });
    threads.add(thread);
    return thread;
  }

  function dispatch(): void {
    while (waiting.length > 0 && !closed) {
      const leastBusy = [...threads].sort((one, other) => one.tasks.size - other.tasks.size)[0];
      const thread = threads.size < count && leastBusy?.tasks.size !== 0 ? start() : leastBusy;
      if (!thread || thread.tasks.size >= maxTasksPerThread) return;
      const next = waiting.shift();
      if (!next) return;
      thread.tasks.set(next.task.id, next);
      const { buffer } = next.task.block;
      const isTransferable = buffer instanceof ArrayBuffer && !isMarkedAsUntransferable(buffer);
      try {
        thread.worker.postMessage(next.task, isTransferable ? [buffer] : []);
      } catch (error) {
        // The buffer was transferred before.
        thread.tasks.delete(next.task.id);
        next.reject(error instanceof Error ? error : new Error(String(error)));
      }
    }
  }

  return {
    run: (task) =>
      new Promise((resolve, reject) => {
        if (closed) {
          reject(new EncoderThreadExited('The encoder threads have been closed.'));
          return;
        }
        lastId += 1;
        waiting.push({ task: { ...task, id: lastId }, resolve, reject });
        dispatch();
      }),
    async close() {
      closed = true;
      for (const { reject } of waiting.splice(0))
        reject(new EncoderThreadExited('The encoder threads have been closed.'));
      await Promise.all([...threads].map(({ worker }) => worker.terminate()));
    },
  };
}

const errorOf = (reply: Exclude<EncodingReply, { outcome: 'encoded' }>): Error =>
  reply.outcome === 'unencodable'
    ? new UnencodableRow(reply.row, reply.column, reply.reason)
    : new MalformedBlock(reply.message);

/** An error from another thread is not an instance of Error. */
const messageOf = (thrown: unknown): string =>
  typeof thrown === 'object' && thrown !== null && 'message' in thrown
    ? String(thrown.message)
    : String(thrown);
