import type { Transform } from 'node:stream';
import { createBrotliDecompress, createGunzip, createZstdDecompress } from 'node:zlib';
import { FileUnreadable } from './row.ts';

type Decoder = Transform & { readonly bytesWritten: number };

const decoders: Readonly<Record<string, () => Decoder>> = {
  gz: createGunzip,
  zst: createZstdDecompress,
  br: createBrotliDecompress,
};

/**
 * Decompresses according to the extension `codec`; other extensions are not compressed.
 * @throws FileUnreadable, and errors of `chunks`
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
      // A zstd file may have several frames; a decoder stops after each. Readers of the other formats stop at the end
      // of the first stream.
      if (codec !== 'zst') throw new FileUnreadable('it continues after its compressed data');
      input.putBack(rest);
    }
  } finally {
    await input.close();
  }
}

async function* decodeOnce(input: Input, decoder: Decoder): AsyncGenerator<Buffer> {
  const feeding = feed(input, decoder);
  // Errors are passed to the reader through the decoder.
  feeding.catch((error: unknown) => decoder.destroy(error as Error));
  try {
    yield* decoder as AsyncIterable<Buffer>;
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    if (!/^(Z_|ZSTD_|ERR__)/.test(code)) throw error;
    throw new FileUnreadable(`its compressed data is damaged (${code})`);
  }
  await feeding;
}

/** Writes chunks to a decoder until it ends, and puts back the rest. */
async function feed(input: Input, decoder: Decoder): Promise<void> {
  let bytesFed = 0;
  for (let chunk = await input.next(); chunk; chunk = await input.next()) {
    await written(decoder, chunk);
    bytesFed += chunk.length;
    const left = bytesFed - decoder.bytesWritten;
    if (left > 0) {
      input.putBack(chunk.subarray(chunk.length - left));
      return;
    }
  }
  decoder.end();
}

/** Resolves when the decoder has consumed a chunk. A chunk written earlier would be mistaken for the rest. */
const written = (decoder: Decoder, chunk: Buffer): Promise<void> =>
  new Promise((resolve, reject) => {
    decoder.write(chunk, (error) => {
      if (error) reject(error);
      else resolve();
    });
  });

/** An iterator over chunks that can put chunks back. */
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
