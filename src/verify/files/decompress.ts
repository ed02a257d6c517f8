import type { Transform } from 'node:stream';
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
  try {
    for (let first = await input.next(); first; first = await input.next()) {
      input.putBack(first);
      yield* decodeOnce(input, createDecoder());
      const rest = await input.next();
      if (!rest) return;
      // Frames of zstd follow each other, and a decoder stops behind one. Readers of the others stop there for good.
      if (codec !== 'zst') throw new FileUnreadable('it goes on behind its compressed data');
      input.putBack(rest);
    }
  } finally {
    await input.close();
  }
}

async function* decodeOnce(input: Input, decoder: Decoder): AsyncGenerator<Buffer> {
  const feeding = feed(input, decoder);
  // An error reaches the reader through the decoder.
  feeding.catch((error: unknown) => decoder.destroy(error as Error));
  try {
    yield* decoder as AsyncIterable<Buffer>;
  } catch (error) {
    const code = Error.isError(error) && 'code' in error ? String(error.code) : '';
    if (!/^(Z_|ZSTD_|ERR__)/.test(code)) throw error;
    throw new FileUnreadable(`its compressed data is broken (${code})`);
  }
  await feeding;
}

/** Feeds a decoder chunk by chunk until it takes no more, and puts back what it left. */
async function feed(input: Input, decoder: Decoder): Promise<void> {
  let fed = 0;
  for (let chunk = await input.next(); chunk; chunk = await input.next()) {
    await written(decoder, chunk);
    fed += chunk.length;
    const left = fed - decoder.bytesWritten;
    if (left > 0) {
      input.putBack(chunk.subarray(chunk.length - left));
      return;
    }
  }
  decoder.end();
}

/** Resolves when the decoder has done with a chunk; one that is written before that would be taken for its rest. */
const written = (decoder: Decoder, chunk: Buffer): Promise<void> =>
  new Promise((resolve, reject) => {
    decoder.write(chunk, (error) => {
      if (error) reject(error);
      else resolve();
    });
  });

/** Chunks one by one, with a way back for what was not wanted. */
interface Input {
  next(): Promise<Buffer | undefined>;
  putBack(chunk: Buffer): void;
  close(): Promise<void>;
}

function createInput(chunks: AsyncIterable<Buffer>): Input {
  const source = chunks[Symbol.asyncIterator]();
  const waiting: Buffer[] = [];
  return {
    async next() {
      const first = waiting.shift();
      if (first) return first;
      const read = await source.next();
      return read.done ? undefined : read.value;
    },
    putBack: (chunk) => void waiting.unshift(chunk),
    async close() {
      await source.return?.();
    },
  };
}
