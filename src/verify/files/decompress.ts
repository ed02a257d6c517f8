import { pipeline, type Transform } from 'node:stream';
import { createBrotliDecompress, createGunzip, createZstdDecompress } from 'node:zlib';
import { FileUnreadable } from '../row.ts';

type Decoder = Transform & { readonly bytesWritten: number };

const decoders: Readonly<Record<string, () => Decoder>> = {
  gz: createGunzip,
  zst: createZstdDecompress,
  br: createBrotliDecompress,
};

/**
 * Inflates what is compressed as the ending `codec` of a name says; any other ending means not at all.
 * @throws FileUnreadable, and what `chunks` throws.
 */
export async function* decompress(chunks: AsyncIterable<Buffer>, codec: string): AsyncGenerator<Buffer> {
  const createDecoder = decoders[codec];
  if (!createDecoder) {
    yield* chunks;
    return;
  }
  const input = createInput(chunks);
  while (await input.hasMore()) {
    yield* decodeOnce(input, createDecoder());
    // Frames of zstd follow each other, and a decoder may stop behind one. Readers of the others stop there for good.
    if (codec !== 'zst' && (await input.hasMore()))
      throw new FileUnreadable('it goes on behind its compressed data');
  }
}

async function* decodeOnce(input: Input, decoder: Decoder): AsyncGenerator<Buffer> {
  const feeding = input.feed(decoder);
  try {
    yield* pipeline(feeding, decoder, () => undefined) as AsyncIterable<Buffer>;
  } catch (error) {
    const code = Error.isError(error) && 'code' in error ? String(error.code) : '';
    if (!/^(Z_|ZSTD_|ERR__)/.test(code)) throw error;
    throw new FileUnreadable(`its compressed data is broken (${code})`);
  }
  // A chunk that was on its way when the decoder ended has to arrive before what is left can be taken back.
  await feeding.return(undefined);
  input.takeBack(decoder.bytesWritten);
}

/** Chunks that can be taken back when a decoder did not want them. */
interface Input {
  hasMore(): Promise<boolean>;
  /** Chunks for a decoder until it ends. */
  feed(decoder: Decoder): AsyncGenerator<Buffer>;
  /** Keeps, for the next one, what a decoder that took so many bytes left of what it was fed. */
  takeBack(taken: number): void;
}

function createInput(chunks: AsyncIterable<Buffer>): Input {
  const source = chunks[Symbol.asyncIterator]();
  let waiting: Buffer[] = [];
  /** What was fed and may not have been taken yet, behind so many bytes that were. */
  let fed: Buffer[] = [];
  let forgotten = 0;

  async function next(): Promise<Buffer | undefined> {
    const first = waiting.shift();
    if (first) return first;
    const read = await source.next();
    return read.done ? undefined : read.value;
  }
  function forget(taken: number): void {
    for (let [first] = fed; first && forgotten + first.length <= taken; [first] = fed) {
      forgotten += first.length;
      fed.shift();
    }
  }
  return {
    async hasMore() {
      const first = await next();
      if (first) waiting.unshift(first);
      return first !== undefined;
    },
    async *feed(decoder) {
      for (let chunk = await next(); chunk; chunk = await next()) {
        fed.push(chunk);
        yield chunk;
        forget(decoder.bytesWritten);
      }
    },
    takeBack(taken) {
      forget(taken);
      const [first, ...rest] = fed;
      if (first) waiting = [first.subarray(taken - forgotten), ...rest, ...waiting];
      fed = [];
      forgotten = 0;
    },
  };
}
