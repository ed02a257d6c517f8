/**
 * Bytes that others own, such as the objects of a bucket, are read in processes with a heap limit and a deadline: whatever they
 * are, a fault of a parser costs such a process, never the worker. README.md says what is read where.
 */
import { createKeyedSemaphore } from '../concurrency/keyed_semaphore.ts';
import { untilAborted } from '../concurrency/until_aborted.ts';
import { bounds } from '../config/bounds.ts';
import { installedPath } from '../config/installation.ts';
import type { Settings } from '../config/settings.ts';
import type { FromStream, ToProcess, TransferredError } from './messages.ts';
import { createProcessPool, isOutOfMemory, type PooledProcess, type ProcessEnd } from './process_pool.ts';

/** A parser of the program of the processes, by its name. */
export interface ForeignParser<Input, Output> {
  readonly name: string;
  /** For the types alone. */
  readonly parse?: (input: Input) => Output;
}

/** A parser of chunks, by its name. It yields its items in groups. */
export interface ForeignReader<Input, Item> {
  readonly name: string;
  /** For the types alone. */
  readonly read?: (input: Input, chunks: AsyncIterable<Buffer>) => AsyncGenerator<readonly Item[]>;
}

/** Names a parser of the program of the processes by its function. */
export const foreignParser = <Parse extends (input: never) => unknown>(
  name: string,
): ForeignParser<Parameters<Parse>[0], Awaited<ReturnType<Parse>>> => ({ name });

/** Reads bytes of others for one project. */
export interface ForeignBytes {
  /**
   * Runs a parser in a process.
   * @throws ForeignBytesTooCostly, ForeignBytesRefused
   */
  parse<Input, Output>(parser: ForeignParser<Input, Output>, input: Input): Promise<Output>;
  /**
   * Reads chunks in a process, which holds the state of the parser. Waiting for chunks does not count against its deadline.
   * @throws ForeignBytesTooCostly, ForeignBytesRefused, and errors of `chunks`
   */
  read<Input, Item>(
    reader: ForeignReader<Input, Item>,
    input: Input,
    chunks: AsyncIterable<Buffer>,
    signal: AbortSignal,
  ): AsyncGenerator<Item>;
}

/** A parser threw an error. */
export class ForeignBytesRefused extends Error {
  override readonly name = 'ForeignBytesRefused';
  readonly error: TransferredError;

  constructor(error: TransferredError) {
    super(error.message);
    this.error = error;
  }
}

/** Reading takes too much memory or time. The message is the end of a sentence about what was read. */
export class ForeignBytesTooCostly extends Error {
  override readonly name = 'ForeignBytesTooCostly';
}

/** The project whose bytes are read; null for what one person reads on the command line or before an export exists. */
type Owner = number | null;

type ForeignBytesSettings = Pick<Settings, 'EXPORTD_READER_MEMORY' | 'EXPORTD_READER_TIMEOUT'>;

const readerProgram = installedPath('src/foreign_parsers/foreign_bytes_process.ts');

interface StreamReceiver {
  receive: (message: FromStream) => void;
  fail: (error: Error) => void;
}

/**
 * The process of a project, which has all of its streams: they never wait for each other, and what one of them takes is taken
 * from the project.
 */
interface ReadingRoom {
  streams: number;
  readonly reader: Promise<PooledProcess>;
  readonly receivers: Map<number, StreamReceiver>;
  /** The last stream has ended. */
  readonly leave: () => void;
}

/**
 * How long a process may wait for a processor, as a multiple of the time that it may use. Exports go first, and 100,000 files of a
 * table must not count as too costly because of them.
 */
const maxWaits = 4;

/** Reads with these limits. */
interface Readers {
  readonly of: (owner: Owner) => ForeignBytes;
}

/** @param program for tests */
export function createReaders(
  { EXPORTD_READER_MEMORY: heapBytes, EXPORTD_READER_TIMEOUT: timeoutMs }: ForeignBytesSettings,
  program = readerProgram,
): Readers {
  const processes = createProcessPool({ program, heapBytes });
  // Projects take turns, and one alone never has all processes.
  const turns = createKeyedSemaphore<Owner>({ total: bounds.parsedObjects.max, keepsLast: true });
  // Not the same: a bucket that is slow keeps a process for as long as it likes.
  const places = createKeyedSemaphore<Owner>({ total: bounds.readingProjects.max });
  const rooms = new Map<Owner, ReadingRoom>();

  /** Processes that did not answer in time. */
  const late = new WeakSet<PooledProcess>();
  /** Ends a process that does not answer in time, of which it may wait most for a processor. @returns what stops the clock */
  const startDeadline = (reader: PooledProcess): (() => void) => {
    const startedAt = performance.now();
    const clock = reader.startClock();
    const check = (): void => {
      const usedMs = clock();
      const waitsMs = performance.now() - startedAt - usedMs;
      if (usedMs < timeoutMs && waitsMs < maxWaits * timeoutMs) timer = setTimeout(check, timeoutMs - usedMs);
      else {
        late.add(reader);
        reader.kill();
      }
    };
    let timer = setTimeout(check, timeoutMs);
    return () => clearTimeout(timer);
  };
  /** Why a process has ended. */
  const endOf = (reader: PooledProcess, end: ProcessEnd): Error => {
    if (late.has(reader))
      return new ForeignBytesTooCostly(`takes longer than ${timeoutMs / 1_000} s to read`);
    return isOutOfMemory(end)
      ? new ForeignBytesTooCostly(`needs more than ${heapBytes / 2 ** 20} MiB of memory to read`)
      : new Error(`A process that reads foreign bytes has ended (${end.signal ?? end.code}).`);
  };

  const parse = async (owner: Owner, message: ToProcess): Promise<unknown> => {
    const release = await turns.acquire(owner);
    try {
      return await processes.use(async (reader) => {
        const { promise, resolve, reject } = Promise.withResolvers<unknown>();
        reader.receive = (answer) => {
          if (answer.type === 'parsed') resolve(answer.output);
          else if (answer.type === 'not_parsed') reject(new ForeignBytesRefused(answer.error));
        };
        reader.fail = (end) => reject(endOf(reader, end));
        const stop = startDeadline(reader);
        reader.send(message);
        return promise.finally(stop);
      });
    } finally {
      release();
    }
  };

  const openRoom = (owner: Owner): ReadingRoom => {
    const entered = Promise.withResolvers<PooledProcess>();
    const left = Promise.withResolvers<undefined>();
    const receivers = new Map<number, StreamReceiver>();
    const forget = (): void => {
      if (rooms.get(owner) === room) rooms.delete(owner);
    };
    const room: ReadingRoom = {
      streams: 0,
      reader: entered.promise,
      receivers,
      leave: () => {
        forget();
        left.resolve(undefined);
      },
    };
    const use = async (): Promise<void> => {
      const release = await places.acquire(owner);
      try {
        await processes.use(async (reader) => {
          reader.receive = (message) => {
            if ('stream' in message) receivers.get(message.stream)?.receive(message);
          };
          reader.fail = (end) => {
            // The next stream starts a new process.
            forget();
            for (const receiver of receivers.values()) receiver.fail(endOf(reader, end));
            left.resolve(undefined);
          };
          entered.resolve(reader);
          await left.promise;
        });
      } finally {
        release();
      }
    };
    use().catch(entered.reject);
    rooms.set(owner, room);
    return room;
  };

  const leave = (room: ReadingRoom): void => {
    room.streams -= 1;
    if (room.streams === 0) room.leave();
  };

  /** Ends a stream in its process, so that the next user of the process finds it idle. */
  const close = async (
    reader: PooledProcess,
    room: ReadingRoom,
    { stream, next }: StreamMessages,
  ): Promise<void> => {
    reader.send({ type: 'close', stream });
    const stop = startDeadline(reader);
    try {
      while ((await next()).type !== 'closed');
    } catch {
      // The process has ended.
    } finally {
      stop();
      room.receivers.delete(stream);
      leave(room);
    }
  };

  async function* read(
    owner: Owner,
    opened: Pick<Extract<ToProcess, { type: 'open' }>, 'reader' | 'input'>,
    chunks: AsyncIterable<Buffer>,
    signal: AbortSignal,
  ): AsyncGenerator {
    const room = rooms.get(owner) ?? openRoom(owner);
    room.streams += 1;
    const messages = createMessages(room.receivers);
    const { stream } = messages;
    const source = chunks[Symbol.asyncIterator]();
    let reader: PooledProcess | undefined;
    try {
      signal.throwIfAborted();
      reader = await untilAborted(room.reader, signal);
      reader.send({ type: 'open', stream, ...opened });
      for (;;) {
        // The process owes an answer whenever all of its messages have been handled.
        const stop = startDeadline(reader);
        const message = await messages.next().finally(stop);
        if (message.type === 'need') {
          const next = await source.next();
          reader.send({ type: 'chunk', stream, bytes: next.done === true ? null : next.value });
        } else if (message.type === 'items') {
          yield message.items;
          reader.send({ type: 'more', stream });
        } else if (message.type === 'failed') throw new ForeignBytesRefused(message.error);
        else return;
      }
    } finally {
      // Behind the consumer's back: a parser may be in the middle of its work.
      if (reader) void close(reader, room, messages);
      else leave(room);
      await source.return?.();
    }
  }

  return {
    of: (owner) => ({
      parse: <Input, Output>({ name }: ForeignParser<Input, Output>, input: Input) =>
        parse(owner, { type: 'parse', parser: name, input }) as Promise<Output>,
      read: async function* <Input, Item>(
        { name }: ForeignReader<Input, Item>,
        input: Input,
        chunks: AsyncIterable<Buffer>,
        signal: AbortSignal,
      ) {
        for await (const items of read(owner, { reader: name, input }, chunks, signal))
          yield* items as readonly Item[];
      },
    }),
  };
}

let lastStream = 0;

/** What a stream gets from its process, in order. */
interface StreamMessages {
  readonly stream: number;
  readonly next: () => Promise<FromStream>;
}

function createMessages(receivers: Map<number, StreamReceiver>): StreamMessages {
  const arrived: FromStream[] = [];
  let failure: Error | undefined;
  let waiting: PromiseWithResolvers<FromStream> | undefined;
  lastStream += 1;
  receivers.set(lastStream, {
    receive: (message) => {
      if (waiting) waiting.resolve(message);
      else arrived.push(message);
      waiting = undefined;
    },
    fail: (error) => {
      failure = error;
      waiting?.reject(error);
      waiting = undefined;
    },
  });
  return {
    stream: lastStream,
    next: () => {
      const first = arrived.shift();
      if (first) return Promise.resolve(first);
      if (failure) return Promise.reject(failure);
      waiting = Promise.withResolvers();
      return waiting.promise;
    },
  };
}

/** For each pair of limits: all destinations of a process share its readers. */
const shared = new Map<string, Readers>();

/** Reads bytes of others for a project. No process starts before it is needed. */
export function foreignBytesOf(settings: ForeignBytesSettings, owner: Owner): ForeignBytes {
  const { EXPORTD_READER_MEMORY: memory, EXPORTD_READER_TIMEOUT: timeout } = settings;
  const limits = `${memory} ${timeout}`;
  const readers = shared.get(limits) ?? createReaders(settings);
  shared.set(limits, readers);
  return readers.of(owner);
}

/** Whether JSON is short enough to be parsed where it is. README.md says what it costs at the worst. */
export const isShort = ({ length }: { readonly length: number }): boolean =>
  length <= bounds.shortForeignText.max;
