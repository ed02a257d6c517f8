import { writeFileSync } from 'node:fs';
import { flushCompileCache } from 'node:module';
import type { FromProcess, ToProcess, TransferredError } from './messages.ts';

type Parse = (input: never) => unknown;
type Read = (input: never, chunks: AsyncIterable<Buffer>) => AsyncIterable<readonly unknown[]>;

/** A stream of this process. What it waits for is rejected when it is closed. */
interface Stream {
  chunk: PromiseWithResolvers<Uint8Array | null> | undefined;
  more: PromiseWithResolvers<undefined> | undefined;
  isClosed: boolean;
}

/** The consumer needs no more. */
class Closed extends Error {
  override readonly name = 'Closed';
}

/** @throws Error when this process has none of that name: as nothing, its bytes would count as read */
function named<Served>(served: Readonly<Record<string, Served>>, name: string): Served {
  const found = served[name];
  if (!found) throw new Error(`This process has no parser "${name}".`);
  return found;
}

/** Serves parsers by their names. What calls it is the program of a process. */
export function serveForeignBytes(
  parsers: Readonly<Record<string, Parse>>,
  readers: Readonly<Record<string, Read>>,
): void {
  const send = (message: FromProcess): void => void process.send?.(message);
  const streams = new Map<number, Stream>();

  const parse = async ({ parser, input }: Extract<ToProcess, { type: 'parse' }>): Promise<void> => {
    try {
      send({ type: 'parsed', output: await named(parsers, parser)(input as never) });
    } catch (error) {
      send({ type: 'not_parsed', error: transferred(error) });
    }
  };

  const open = async (opened: Extract<ToProcess, { type: 'open' }>): Promise<void> => {
    const { stream: id } = opened;
    const stream: Stream = { chunk: undefined, more: undefined, isClosed: false };
    streams.set(id, stream);
    async function* chunks(): AsyncGenerator<Buffer> {
      for (;;) {
        if (stream.isClosed) throw new Closed();
        stream.chunk = Promise.withResolvers();
        send({ type: 'need', stream: id });
        const bytes = await stream.chunk.promise;
        if (!bytes) return;
        yield Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
      }
    }
    try {
      for await (const items of named(readers, opened.reader)(opened.input as never, chunks())) {
        if (stream.isClosed) throw new Closed();
        stream.more = Promise.withResolvers();
        send({ type: 'items', stream: id, items });
        await stream.more.promise;
      }
      send({ type: 'done', stream: id });
    } catch (error) {
      if (!stream.isClosed) send({ type: 'failed', stream: id, error: transferred(error) });
    }
    streams.delete(id);
    if (stream.isClosed) send({ type: 'closed', stream: id });
  };

  const close = (id: number): void => {
    const stream = streams.get(id);
    if (!stream) {
      send({ type: 'closed', stream: id });
      return;
    }
    stream.isClosed = true;
    stream.chunk?.reject(new Closed());
    stream.more?.reject(new Closed());
  };

  expectToEndFirst();
  // For the next process: this one may be killed before Node writes what it has compiled.
  flushCompileCache();
  // Its parent has ended.
  process.on('disconnect', () => process.exit());
  process.on('message', (message: ToProcess) => {
    if (message.type === 'parse') void parse(message);
    else if (message.type === 'open') void open(message);
    else if (message.type === 'close') close(message.stream);
    else if (message.type === 'chunk') streams.get(message.stream)?.chunk?.resolve(message.bytes);
    else streams.get(message.stream)?.more?.resolve(undefined);
  });
  send({ type: 'ready' });
}

/** Where memory is short for the worker and its processes, Linux ends this one rather than the worker. */
function expectToEndFirst(): void {
  try {
    writeFileSync('/proc/self/oom_score_adj', '1000');
  } catch {
    // Not Linux.
  }
}

function transferred(error: unknown): TransferredError {
  const { name, message } = error instanceof Error ? error : new Error(String(error));
  const type = error instanceof Error && 'type' in error ? String(error.type) : null;
  return { name, message, type };
}
