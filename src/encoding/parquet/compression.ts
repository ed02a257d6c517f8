import { brotliCompressSync, constants, gzipSync, zstdCompressSync } from 'node:zlib';
import type { CompressionCodec } from 'hyparquet';
import { compressSync as lz4CompressSync } from 'lz4-napi';
import { compressSync as snappyCompressSync } from 'snappy';
import { chunkSizeFor, levelOf } from '../compression.ts';
import type { ParquetCompression } from '../encoder.ts';

/** A compression of pages, and its name in Parquet. */
export interface Codec {
  readonly name: CompressionCodec;
  /** Returns the compressed bytes, possibly the page itself. */
  readonly compress: (page: Buffer) => Uint8Array;
  /** Whether the compressed bytes have a separate buffer, which can be released after they were copied. */
  readonly hasOwnMemory: boolean;
}

const codecs: Record<ParquetCompression, (level?: number | null) => Codec> = {
  zstd: (level) => ({
    name: 'ZSTD',
    hasOwnMemory: true,
    compress: (page) =>
      zstdCompressSync(page, {
        chunkSize: chunkSizeFor(page),
        params: { [constants.ZSTD_c_compressionLevel]: levelOf('zstd', level) },
      }),
  }),
  snappy: () => ({
    name: 'SNAPPY',
    hasOwnMemory: true,
    // Memory of JavaScript: that of Rust takes twice the time to wrap.
    compress: (page) => snappyCompressSync(page, { copyOutputData: true }),
  }),
  gzip: (level) => ({
    name: 'GZIP',
    hasOwnMemory: true,
    compress: (page) =>
      gzipSync(page, { chunkSize: chunkSizeFor(page), level: levelOf('gzip', level), memLevel: 9 }),
  }),
  brotli: (level) => ({
    name: 'BROTLI',
    hasOwnMemory: true,
    compress: (page) =>
      brotliCompressSync(page, {
        chunkSize: chunkSizeFor(page),
        params: {
          [constants.BROTLI_PARAM_QUALITY]: levelOf('brotli', level),
          [constants.BROTLI_PARAM_SIZE_HINT]: page.length,
        },
      }),
  }),
  // The library prepends the length of the page, which Parquet stores in the page header.
  lz4: () => ({
    name: 'LZ4_RAW',
    hasOwnMemory: false,
    compress: (page) => lz4CompressSync(page).subarray(4),
  }),
};

const uncompressed: Codec = { name: 'UNCOMPRESSED', hasOwnMemory: false, compress: (page) => page };

/** The codec of a compression; with its usual level unless another is given. */
export const codecOf = (compression: ParquetCompression | null, level?: number | null): Codec =>
  compression === null ? uncompressed : codecs[compression](level);
