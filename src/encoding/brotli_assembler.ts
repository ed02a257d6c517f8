import { finished } from 'node:stream/promises';
import { constants, createBrotliCompress } from 'node:zlib';
import type { EncodedBlock, FileAssembly } from './encoder.ts';

/** Bytes in which compressed data comes out. */
const chunkSize = 256 * 1024;

/**
 * Makes one brotli stream of the text of a file: readers take the first of several streams for all there is. The stream
 * cannot be gone on with in another process, so its parts have no state. Compresses in a thread of libuv's pool.
 * @param head the text in front of the first row
 */
export function assembleBrotli(head: Buffer): FileAssembly {
  const stream = createBrotliCompress({
    chunkSize,
    params: {
      [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT,
      // The thread is one, and quality 5 takes it nearly twice as long for a file that is 4 % smaller.
      [constants.BROTLI_PARAM_QUALITY]: 4,
      [constants.BROTLI_PARAM_LGWIN]: 20,
    },
  });
  let pieces: Buffer[] = [];
  let begun = false;
  stream.on('data', (piece: Buffer) => pieces.push(piece));
  // Whoever waits is told of it; without a listener an error would end the process.
  stream.on('error', () => undefined);
  // A write that is under way is not told when the stream is destroyed, or told that all is well.
  const destroyed = Promise.withResolvers<never>();
  destroyed.promise.catch(() => undefined);
  stream.once('close', () => destroyed.reject(stream.errored ?? new Error('The file was given up.')));

  /** Resolves when the compressor has taken all of it, so that no more than a block ever waits. */
  const write = async (text: Buffer): Promise<void> => {
    const taken = Promise.withResolvers<undefined>();
    stream.write(text, (error) => (error ? taken.reject(error) : taken.resolve(undefined)));
    await Promise.race([taken.promise, destroyed.promise]);
    if (stream.destroyed) await destroyed.promise;
  };
  const begin = async (): Promise<void> => {
    if (begun) return;
    begun = true;
    await write(head);
  };
  const take = (): Buffer => {
    const taken = Buffer.concat(pieces);
    pieces = [];
    return taken;
  };

  return {
    async append(block: EncodedBlock) {
      await begin();
      await write(block.bytes);
      return take();
    },
    takeState: () => null,
    async finish() {
      await begin();
      stream.end();
      await finished(stream);
      return take();
    },
    close: () => void stream.destroy(),
  };
}
