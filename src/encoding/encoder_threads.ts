/** Threads that read pages and encode blocks, and the messages between them and the process. */
import { pathToFileURL } from 'node:url';
import { isMarkedAsUntransferable, Worker } from 'node:worker_threads';
import { installedPath } from '../config/installation.ts';
import type { CopiedBlocks, HeldBlock, HeldPageBlock, PageRequest, PageThreads } from '../source/source.ts';
import type { SourceConnectionOptions } from '../source/source_connection.ts';
import { restoreReadError, type TransferredReadError } from '../source/transferred_error.ts';
import type { EncodingReply, EncodingResult, EncodingTask } from './encoder.ts';
import type { JoinedBlocks, JoiningTask } from './parquet/join_row_group.ts';
import { MalformedBlock, UnencodableRow } from './rows.ts';

/** What a thread is started with. */
export interface ThreadOptions {
  /** The maximum of unused memory that it keeps for the next blocks, in bytes. */
  readonly unusedBlockBytes: number;
}

/** A page to read, over the connections that the thread has to this source. */
export interface ReadTask {
  readonly id: number;
  readonly source: SourceConnectionOptions;
  readonly page: PageRequest;
}

/** From the process to a thread. */
export type ToEncoderThread =
  | ({ readonly type: 'encode' } & EncodingTask)
  /** Encodes a block that the thread holds, and releases it. */
  | ({ readonly type: 'encode_held'; readonly held: number } & Omit<EncodingTask, 'block'>)
  | ({ readonly type: 'read' } & ReadTask)
  | { readonly type: 'cancel_read'; readonly id: number }
  | { readonly type: 'drop'; readonly held: number }
  | { readonly type: 'warm_up' }
  | ({ readonly type: 'join' } & JoiningTask);

/** A block of a page, without the number of its thread. */
export type BlockOfThread = Omit<HeldPageBlock, 'thread'>;

/** From a thread to the process. */
export type FromEncoderThread =
  | EncodingReply
  | ({ readonly id: number; readonly outcome: 'read' } & CopiedBlocks<BlockOfThread>)
  | ({ readonly id: number; readonly outcome: 'joined' } & JoinedBlocks)
  | { readonly id: number; readonly outcome: 'read_failed'; readonly error: TransferredReadError };

/**
 * The thread that read or encoded a block exited, or the pool was closed. The block is lost, but can be read and encoded
 * again.
 */
export class EncoderThreadExited extends Error {
  override readonly name = 'EncoderThreadExited';
}

/** A block that a thread holds, and how it is encoded. */
type HeldTask = Omit<EncodingTask, 'id' | 'block'> & Pick<HeldBlock, 'thread' | 'held' | 'bytes'>;

/** Threads that read pages and encode blocks. */
export interface EncoderThreads extends PageThreads {
  /** Encodes a block in any thread. */
  run(task: Omit<EncodingTask, 'id'>): Promise<EncodingResult>;
  /** Encodes a block in the thread that holds it, which releases it. */
  runHeld(task: HeldTask): Promise<EncodingResult>;
  /** Joins encoded blocks in any thread. Their memory is transferred. */
  join(task: Omit<JoiningTask, 'id'>): Promise<JoinedBlocks>;
  /** Starts all threads, and lets each load and compile its code. */
  warmUp(): void;
  close(): Promise<void>;
}

/** How many threads there are, and what each is started with. */
interface EncoderThreadsOptions extends ThreadOptions {
  readonly count: number;
}

/** The blocks of other threads that a thread has: the one that it encodes, and the next one, so that it never waits. */
const maxTasksPerThread = 2;

type Reply<Outcome extends FromEncoderThread['outcome']> = Extract<FromEncoderThread, { outcome: Outcome }>;

interface Task {
  readonly message: Extract<ToEncoderThread, { id: number }>;
  readonly transfer: ArrayBuffer[];
  readonly resolve: (reply: Reply<'encoded' | 'joined' | 'read'>) => void;
  readonly reject: (error: Error) => void;
}

interface Thread {
  readonly number: number;
  readonly worker: Worker;
  readonly tasks: Map<number, Task>;
  /** The bytes of pages that it reads and of blocks that it holds. */
  heldBytes: number;
  /** The pages that it reads now. */
  reads: number;
}

const encoderProgram = pathToFileURL(installedPath('src/encoding/encoder_thread.ts'));

/**
 * Starts up to `count` threads, each when there is work and no idle thread. A thread that exits is replaced the same
 * way.
 */
export function startEncoderThreads(
  { count, unusedBlockBytes }: EncoderThreadsOptions,
  program: URL = encoderProgram,
): EncoderThreads {
  const threads = new Map<number, Thread>();
  const waiting: Task[] = [];
  let lastId = 0;
  let lastThread = 0;
  let closed = false;

  function start(): Thread {
    const workerData: ThreadOptions = { unusedBlockBytes };
    const worker = new Worker(program, { name: 'encoder', workerData });
    lastThread += 1;
    const thread: Thread = { number: lastThread, worker, tasks: new Map(), heldBytes: 0, reads: 0 };
    let cause = 'it was stopped';
    worker.on('message', (reply: FromEncoderThread) => {
      const pending = thread.tasks.get(reply.id);
      thread.tasks.delete(reply.id);
      if (reply.outcome === 'encoded' || reply.outcome === 'joined' || reply.outcome === 'read')
        pending?.resolve(reply);
      else pending?.reject(errorOf(reply));
      dispatch();
    });
    worker.on('error', (error) => (cause = messageOf(error)));
    worker.on('exit', () => {
      threads.delete(thread.number);
      for (const { reject } of thread.tasks.values())
        reject(new EncoderThreadExited(`An encoder thread exited: ${cause}.`));
      dispatch();
    });
    threads.set(thread.number, thread);
    return thread;
  }

  /** Of the first `limit` threads the one with the least load, or a new one if that has any and there may be more. */
  const choose = (load: (thread: Thread) => number, limit = count): Thread => {
    const candidates = [...threads.values()].slice(0, limit);
    const [least] = candidates.toSorted((one, other) => load(one) - load(other));
    return least && (load(least) === 0 || candidates.length >= limit) ? least : start();
  };

  /**
   * The thread that reads the next page, and how many connections it may have. No more threads read than there are
   * connections, so that all together never open more. One whose connections are all in use comes last.
   */
  const chooseReader = (
    maxConnections: number,
  ): { readonly thread: Thread; readonly connections: number } => {
    const readers = Math.min(count, maxConnections);
    const connections = Math.floor(maxConnections / readers);
    const load = ({ heldBytes, reads }: Thread): number =>
      heldBytes + (reads < connections ? 0 : Number.MAX_SAFE_INTEGER / 2);
    return { thread: choose(load, readers), connections };
  };

  const send = (thread: Thread, task: Task): void => {
    thread.tasks.set(task.message.id, task);
    try {
      thread.worker.postMessage(task.message, task.transfer);
    } catch (error) {
      // The buffer was transferred before.
      thread.tasks.delete(task.message.id);
      task.reject(error instanceof Error ? error : new Error(String(error)));
    }
  };

  function dispatch(): void {
    while (waiting.length > 0 && !closed) {
      const thread = choose(({ tasks }) => tasks.size);
      if (thread.tasks.size >= maxTasksPerThread) return;
      const next = waiting.shift();
      if (next) send(thread, next);
    }
  }

  /** Gives a task to a thread, or to the next idle one. */
  const perform = <Outcome extends 'encoded' | 'joined' | 'read'>(
    message: Task['message'],
    { thread, transfer = [] }: { thread?: Thread | undefined; transfer?: ArrayBuffer[] } = {},
  ): Promise<Reply<Outcome>> =>
    new Promise((resolve, reject) => {
      const task = { message, transfer, reject, resolve: resolve as Task['resolve'] };
      if (closed) reject(new EncoderThreadExited('The encoder threads have been closed.'));
      else if (thread) send(thread, task);
      else {
        waiting.push(task);
        dispatch();
      }
    });

  const nextId = (): number => (lastId += 1);

  return {
    run: (task) => {
      const { buffer } = task.block;
      const isTransferable = buffer instanceof ArrayBuffer && !isMarkedAsUntransferable(buffer);
      return perform<'encoded'>(
        { type: 'encode', id: nextId(), ...task },
        { transfer: isTransferable ? [buffer] : [] },
      );
    },
    async runHeld({ thread: number, bytes, ...task }) {
      const thread = threads.get(number);
      if (!thread) throw new EncoderThreadExited('The encoder thread that held a block has exited.');
      try {
        return await perform<'encoded'>({ type: 'encode_held', id: nextId(), ...task }, { thread });
      } finally {
        thread.heldBytes -= bytes;
      }
    },
    join: (task) =>
      perform<'joined'>(
        { type: 'join', id: nextId(), ...task },
        { transfer: task.blocks.map(({ bytes }) => bytes.buffer) },
      ),
    async readPage(source, page, signal) {
      signal.throwIfAborted();
      if (closed) throw new EncoderThreadExited('The encoder threads have been closed.');
      const { thread, connections } = chooseReader(source.maxConnections);
      const { number, worker } = thread;
      const id = nextId();
      const cancel = (): void => worker.postMessage({ type: 'cancel_read', id } satisfies ToEncoderThread);
      thread.heldBytes += page.maxBytes;
      thread.reads += 1;
      signal.addEventListener('abort', cancel);
      try {
        const {
          outcome: _,
          id: __,
          ...copied
        } = await perform<'read'>(
          { type: 'read', id, source: { ...source, maxConnections: connections }, page },
          { thread },
        );
        thread.heldBytes += copied.bytes;
        return { ...copied, blocks: copied.blocks.map((block) => ({ ...block, thread: number })) };
      } catch (error) {
        throw signal.aborted ? signal.reason : error;
      } finally {
        signal.removeEventListener('abort', cancel);
        thread.heldBytes -= page.maxBytes;
        thread.reads -= 1;
      }
    },
    drop({ thread: number, held, bytes }) {
      const thread = threads.get(number);
      if (!thread) return;
      thread.heldBytes -= bytes;
      thread.worker.postMessage({ type: 'drop', held } satisfies ToEncoderThread);
    },
    warmUp() {
      if (closed) return;
      while (threads.size < count) start();
      for (const { worker } of threads.values())
        worker.postMessage({ type: 'warm_up' } satisfies ToEncoderThread);
    },
    async close() {
      closed = true;
      for (const { reject } of waiting.splice(0))
        reject(new EncoderThreadExited('The encoder threads have been closed.'));
      await Promise.all([...threads.values()].map(({ worker }) => worker.terminate()));
    },
  };
}

const errorOf = (reply: Exclude<FromEncoderThread, { outcome: 'encoded' | 'joined' | 'read' }>): Error => {
  switch (reply.outcome) {
    case 'unencodable':
      return new UnencodableRow(reply.row, reply.column, reply.reason);
    case 'malformed':
      return new MalformedBlock(reply.message);
    case 'read_failed':
      return restoreReadError(reply.error);
  }
};

/** An error from another thread is not an instance of Error. */
const messageOf = (thrown: unknown): string =>
  typeof thrown === 'object' && thrown !== null && 'message' in thrown
    ? String(thrown.message)
    : String(thrown);
