// Zstandard for Node 20, whose zlib has none. esbuild puts this module in place of node:zlib.
import { decompress, Decompress } from 'fzstd';
import { createRequire } from 'node:module';
import { Transform, type TransformCallback } from 'node:stream';
import zlib, { type ZstdOptions } from 'node:zlib';
import { installedPath } from '../../config/installation.ts';

export * from 'node:zlib';

/** What is used of the package, which the build has a copy of. */
interface ZstdLibrary {
  init(): Promise<void>;
  compress(bytes: Uint8Array, level: number): Uint8Array;
}

const library =
  'zstdCompressSync' in zlib
    ? undefined
    : (createRequire(import.meta.url)(installedPath('zstd.cjs')) as ZstdLibrary);
await library?.init();

const level = 100;
/** With the numbers of Zstandard's own parameters. */
export const constants = { ...zlib.constants, ZSTD_c_compressionLevel: level, ZSTD_c_checksumFlag: 201 };

const compressSync = (bytes: Buffer, { params = {} }: ZstdOptions = {}): Buffer =>
  Buffer.from(library?.compress(bytes, Number(params[level] ?? 1)) ?? []);

function decompressSync(bytes: Buffer, { maxOutputLength = Infinity }: ZstdOptions = {}): Buffer {
  const output = decompress(bytes);
  if (output.length > maxOutputLength) throw new RangeError('The output is larger than maxOutputLength.');
  return Buffer.from(output.buffer, output.byteOffset, output.length);
}

/** Decompresses all frames of a stream. Node's decoder stops after each. */
class ZstdDecoder extends Transform {
  bytesWritten = 0;
  readonly #decoder = new Decompress((bytes) => this.push(bytes));

  override _transform(chunk: Buffer, _: BufferEncoding, done: TransformCallback): void {
    this.bytesWritten += chunk.length;
    this.#feed(chunk, false, done);
  }

  override _flush(done: TransformCallback): void {
    this.#feed(Buffer.alloc(0), true, done);
  }

  #feed(bytes: Buffer, isLast: boolean, done: TransformCallback): void {
    try {
      this.#decoder.push(bytes, isLast);
      done();
    } catch (error) {
      done(Object.assign(new Error(String(error)), { code: 'ZSTD_error_corruption_detected' }));
    }
  }
}

export const zstdCompressSync = library ? compressSync : zlib.zstdCompressSync;
export const zstdDecompressSync = library ? decompressSync : zlib.zstdDecompressSync;
export const createZstdDecompress = library
  ? (): ZstdDecoder => new ZstdDecoder()
  : zlib.createZstdDecompress;
