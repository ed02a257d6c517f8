import { isMarkedAsUntransferable, Worker } from 'node:worker_threads';
import type { EncodingAnswer, EncodingResult, EncodingTask } from './encoding_task.ts';
import { MalformedBlock, UnencodableRow } from './unencodable_row.ts';

/** The thread that worked on a block died, or the pool was closed. The block is gone; it can be read and encoded again. */
export class EncoderThreadLost extends Error {
  override readonly name = 'EncoderThreadLost';
}

/** Threads that encode blocks. */
export interface EncoderThreads {
  run(task: Omit<EncodingTask, 'id'>): Promise<EncodingResult>;
  close(): Promise<void>;
}

/** Blocks at a thread: the one it works on, and the next, so that it never waits for one. */
const tasksAtThread = 2;

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

/** Starts a thread when there is work that no idle thread can take, up to `count`; one that dies is replaced likewise. */
export function startEncoderThreads(count: number, program: URL = encoderProgram): EncoderThreads {
  const threads = new Set<Thread>();
  const waiting: WaitingTask[] = [];
  let lastId = 0;
  let closed = false;

  function start(): Thread {
    const worker = new Worker(program, { name: 'encoder' });
    const thread: Thread = { worker, tasks: new Map() };
    let cause = 'it was stopped';
    worker.on('message', (answer: EncodingAnswer) => {
      const done = thread.tasks.get(answer.id);
      thread.tasks.delete(answer.id);
      if (answer.outcome === 'encoded') done?.resolve(answer);
      else done?.reject(errorOf(answer));
      handOut();
    });
    worker.on('error', (error) => (cause = messageOf(error)));
    worker.on('exit', () => {
      threads.delete(thread);
      for (const { reject } of thread.tasks.values())
        reject(new EncoderThreadLost(`An encoder thread ended: ${cause}.`));
      handOut();
    });
    threads.add(thread);
    return thread;
  }

  function handOut(): void {
    while (waiting.length > 0 && !closed) {
      const idlest = [...threads].sort((one, other) => one.tasks.size - other.tasks.size)[0];
      const thread = threads.size < count && idlest?.tasks.size !== 0 ? start() : idlest;
      if (!thread || thread.tasks.size >= tasksAtThread) return;
      const next = waiting.shift();
      if (!next) return;
      thread.tasks.set(next.task.id, next);
      const { buffer } = next.task.block;
      const movable = buffer instanceof ArrayBuffer && !isMarkedAsUntransferable(buffer);
      try {
        thread.worker.postMessage(next.task, movable ? [buffer] : []);
      } catch (error) {
        // Memory that was handed over before.
        thread.tasks.delete(next.task.id);
        next.reject(error instanceof Error ? error : new Error(String(error)));
      }
    }
  }

  return {
    run: (task) =>
      new Promise((resolve, reject) => {
        if (closed) {
          reject(new EncoderThreadLost('The encoder threads have been closed.'));
          return;
        }
        lastId += 1;
        waiting.push({ task: { ...task, id: lastId }, resolve, reject });
        handOut();
      }),
    async close() {
      closed = true;
      for (const { reject } of waiting.splice(0))
        reject(new EncoderThreadLost('The encoder threads have been closed.'));
      await Promise.all([...threads].map(({ worker }) => worker.terminate()));
    },
  };
}

const errorOf = (answer: Exclude<EncodingAnswer, { outcome: 'encoded' }>): Error =>
  answer.outcome === 'refused'
    ? new UnencodableRow(answer.row, answer.column, answer.reason)
    : new MalformedBlock(answer.message);

/** An error of another thread arrives as an object that only looks like one. */
const messageOf = (thrown: unknown): string =>
  typeof thrown === 'object' && thrown !== null && 'message' in thrown
    ? String(thrown.message)
    : String(thrown);
