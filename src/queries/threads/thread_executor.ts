import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import { installedPath } from '../../config/installation.ts';
import type { Settings } from '../../config/settings.ts';
import { builtInQueryKinds } from '../built_in_kinds.ts';
import { QueryError } from '../query_errors.ts';
import type { ComputedOutput, QueryExecutor, QueryForm, RunEnvironment } from '../query_executor.ts';
import { parseForm } from '../parse_query.ts';
import { createQuerySlots, type SlotLimits } from '../query_slots.ts';
import {
  type FromThread,
  restoreError,
  type ThreadTask,
  type ToThread,
  type WarehouseRequest,
} from './thread_messages.ts';

/** Answers what a thread asks of the warehouse, and keeps the errors. */
interface WarehouseServer {
  serve(request: WarehouseRequest): void;
  /** The error of a request. */
  errorOf(id: number): unknown;
  /** Waits until no statement runs. */
  settled(): Promise<void>;
}

/** @param send sends to the thread; does nothing once it has ended */
function createWarehouseServer(
  { warehouse, inferTypes, progress }: Omit<RunEnvironment, 'signal'>,
  send: (message: ToThread) => void,
): WarehouseServer {
  const errors = new Map<number, unknown>();
  let running: Promise<unknown> = Promise.resolve();

  async function answer(request: WarehouseRequest): Promise<void> {
    const { id } = request;
    if (request.asks === 'schema') {
      send({ type: 'schema', id, schema: await warehouse.schema() });
      return;
    }
    if (request.asks === 'types') {
      send({ type: 'types', id, types: await inferTypes(request.properties) });
      return;
    }
    let rowsRead = 0;
    let bytesRead = 0;
    const columns = await warehouse.readRows(request.statement, {
      ...request.limits,
      receive: (rows, bytes) => {
        rowsRead += rows.length;
        bytesRead += bytes;
        progress({ rows_read: rowsRead, bytes_read: bytesRead });
        send({ type: 'rows', id, rows, bytes });
      },
    });
    send({ type: 'columns', id, columns });
  }

  return {
    serve: (request) => {
      running = answer(request).catch((error: unknown) => {
        errors.set(request.id, error);
        send({ type: 'request_failed', id: request.id });
      });
    },
    errorOf: (id) => errors.get(id),
    settled: async () => {
      await running;
    },
  };
}

/** A thread that computes queries. */
interface QueryThread {
  send(message: ToThread): void;
  /** Set while a task runs. */
  receive: (message: FromThread) => void;
  /** Called if the thread ends while a task runs; `cause` is its error. */
  fail: (cause: unknown) => void;
  terminate(): Promise<unknown>;
}

/** Threads that each run one task at a time. */
interface ThreadPool {
  /** Runs a task on an idle thread, or on a new one; waits while all are busy. @throws the reason of the signal */
  use<Result>(signal: AbortSignal, task: (thread: QueryThread) => Promise<Result>): Promise<Result>;
  /** Ends all threads. Their tasks fail. */
  close(): Promise<void>;
}

interface ThreadPoolOptions {
  readonly maxThreads: number;
  /** Maximum heap of a thread, which ends when it needs more. */
  readonly heapBytes: number;
  readonly program: URL;
}

/** The pool was closed. */
class ThreadPoolClosed extends Error {
  override readonly name = 'ThreadPoolClosed';
}

const outsideTask = (): void => undefined;

/** Starts a thread when it is first needed, and keeps it: its start takes longer than most queries. */
function createThreadPool({ maxThreads, heapBytes, program }: ThreadPoolOptions): ThreadPool {
  const threads = new Set<QueryThread>();
  const idle: { readonly thread: QueryThread; readonly worker: Worker }[] = [];
  const waiting = new Set<() => void>();
  let closed = false;

  function start(): { thread: QueryThread; worker: Worker } {
    const worker = new Worker(program, {
      name: 'query',
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

/** A shorter query is parsed in the calling thread, in less time than a message takes. Characters of JSON. */
const maxInlineLength = 4_096;
/** How long a long query may be parsed, in milliseconds, with the start of its thread on a busy machine. */
const parseTimeoutMs = 30_000;
/** How long a thread may take to end by itself after its statement was cancelled, in milliseconds. */
const cancelGraceMs = 200;

/** Projects take turns in parsing, like in running: many long queries of one must not delay a query of another. */
const parseLimits: SlotLimits = {
  slots: 1,
  projectSlots: 1,
  keySlots: 1,
  queueSize: Infinity,
  projectQueueSize: Infinity,
  timeoutMs: 30_000,
};

type ThreadExecutorSettings = Pick<Settings, 'EXPORTD_QUERY_SLOTS' | 'EXPORTD_QUERY_THREAD_MEMORY'>;

const queryProgram = pathToFileURL(installedPath('src/queries/threads/query_thread.ts'));

/**
 * Computes queries in threads of their own, so that nothing but messages passes through the event loop of the server or
 * worker. A query that runs too long or needs too much memory ends its thread, not the process.
 * @param program for tests
 */
export function createThreadExecutor(
  settings: ThreadExecutorSettings,
  program: URL = queryProgram,
): QueryExecutor {
  const { EXPORTD_QUERY_SLOTS: slots, EXPORTD_QUERY_THREAD_MEMORY: heapBytes } = settings;
  const options = { heapBytes, program };
  const running = createThreadPool({ ...options, maxThreads: slots });
  // Not one of the others, which may all be busy for minutes.
  const parsing = createThreadPool({ ...options, maxThreads: 1 });
  const parseSlots = createQuerySlots(parseLimits);
  const closing = new AbortController();

  /** Runs one task on a thread. @throws QueryError, QuerySchemaError, errors of statements, the signal's reason */
  function perform(
    thread: QueryThread,
    given: ThreadTask,
    environment: Omit<RunEnvironment, 'signal'> | null,
    signal: AbortSignal,
  ): Promise<ResultMessage> {
    const { promise, resolve, reject } = Promise.withResolvers<ResultMessage>();
    const requests = environment && createWarehouseServer(environment, (message) => thread.send(message));
    const ended = new AbortController();
    thread.receive = (message) => {
      if (message.type === 'request') requests?.serve(message.request);
      else if (message.type === 'failed') reject(restoreError(message.error));
      else if (message.type === 'failed_request') reject(requests?.errorOf(message.id));
      else resolve(message);
    };
    thread.fail = (cause) => reject(signal.aborted ? signal.reason : errorOfThread(cause, heapBytes));
    const end = async (): Promise<void> => {
      await requests?.settled();
      await delay(cancelGraceMs, undefined, { signal: ended.signal });
      await thread.terminate();
    };
    const endOnAbort = (): void => void end().catch(() => undefined);
    signal.addEventListener('abort', endOnAbort);
    if (signal.aborted) endOnAbort();
    thread.send(given);
    return promise.finally(() => {
      ended.abort();
      signal.removeEventListener('abort', endOnAbort);
    });
  }

  /** Runs a task without statements. Projects take turns. */
  async function performInTurn(
    { team_id }: { readonly team_id: number },
    given: ThreadTask,
  ): Promise<ResultMessage> {
    const release = await parseSlots.acquire({ team_id, key_id: null }, closing.signal);
    try {
      return await parsing.use(closing.signal, (thread) =>
        perform(thread, given, null, AbortSignal.timeout(parseTimeoutMs)),
      );
    } catch (error) {
      throw isTimeout(error) ? new QueryError('query_timeout', tooLongToParse) : error;
    } finally {
      release();
    }
  }

  return {
    async parse(task): Promise<QueryForm> {
      if (JSON.stringify([task.query, task.filters_override]).length <= maxInlineLength)
        return parseForm(builtInQueryKinds, task);
      const parsed = await performInTurn(task.project, { type: 'parse', task });
      if (parsed.type !== 'parsed') throw new Error('A thread replied to another task.');
      return parsed.form;
    },
    async check(task) {
      await performInTurn(task.project, { type: 'check', task });
    },
    async run(task, { signal, ...environment }): Promise<ComputedOutput> {
      const computed = await running.use(signal, (thread) =>
        perform(thread, { type: 'run', task }, environment, signal),
      );
      if (computed.type !== 'computed') throw new Error('A thread replied to another task.');
      return computed.output;
    },
    close: async () => {
      closing.abort(new ThreadPoolClosed('The threads of queries have been closed.'));
      await Promise.all([running.close(), parsing.close()]);
    },
  };
}

const isTimeout = (error: unknown): boolean => error instanceof Error && error.name === 'TimeoutError';

const tooLongToParse = `The query takes longer than ${parseTimeoutMs / 1_000} s to parse. Send a shorter query.`;

type ResultMessage = Extract<FromThread, { type: 'parsed' | 'checked' | 'computed' }>;

function errorOfThread(cause: unknown, heapBytes: number): Error {
  const { code } = cause as NodeJS.ErrnoException;
  if (code === 'ERR_WORKER_OUT_OF_MEMORY')
    return new QueryError(
      'result_too_large',
      `The query needs more than ${heapBytes / 2 ** 20} MiB to compute its result. Select fewer columns or rows, a shorter date range or fewer breakdown values.`,
    );
  return new Error('A thread of queries has ended.', { cause });
}
