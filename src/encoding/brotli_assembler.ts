import { finished } from 'node:stream/promises';
import { constants, createBrotliCompress } from 'node:zlib';
import { levelOf } from './compression_levels.ts';
import type { EncodedBlock, FileAssembly } from './encoder.ts';

/** Chunk size of the compressed output in bytes. */
const chunkSize = 256 * 1024;

/**
 * Compresses a file as one brotli stream, because readers stop after the first of several streams. Another process
 * cannot continue the stream, so its parts have no state. Compression runs in a thread of libuv's pool.
 * @param fileHeader the text before the first row
 * @param level the quality; the usual one by default
 */
export function assembleBrotli(fileHeader: Buffer, level?: number | null): FileAssembly {
  const stream = createBrotliCompress({
    chunkSize,
    params: {
      [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT,
      [constants.BROTLI_PARAM_QUALITY]: levelOf('brotli', level),
      [constants.BROTLI_PARAM_LGWIN]: 20,
    },
  });
  let chunks: Buffer[] = [];
  let started = false;
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  // Reported to the caller of `append`. Without a listener an error would end the process.
  stream.on('error', () => undefined);
  // The callback of a pending write is not called, or reports success, when the stream is destroyed.
  const destroyed = Promise.withResolvers<never>();
  destroyed.promise.catch(() => undefined);
  stream.once('close', () => destroyed.reject(stream.errored ?? new Error('The file was abandoned.')));

  /** Resolves when the compressor has consumed the text, so that at most one block is pending. */
  const write = async (text: Buffer): Promise<void> => {
    const taken = Promise.withResolvers<undefined>();
    stream.write(text, (error) => (error ? taken.reject(error) : taken.resolve(undefined)));
    await Promise.race([taken.promise, destroyed.promise]);
    if (stream.destroyed) await destroyed.promise;
  };
  const start = async (): Promise<void> => {
    if (started) return;
    started = true;
    await write(fileHeader);
  };
  const take = (): Buffer => {
    const taken = Buffer.concat(chunks);
    chunks = [];
    return taken;
  };

  return {
    async append(block: EncodedBlock) {
      await start();
      await write(block.bytes);
      return take();
    },
    takeState: () => null,
    async finish() {
      await start();
      stream.end();
      await finished(stream);
      return take();
    },
    close: () => void stream.destroy(),
  };
}
