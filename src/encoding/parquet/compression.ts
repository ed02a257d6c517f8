import { brotliCompressSync, constants, gzipSync, zstdCompressSync } from 'node:zlib';
import type { CompressionCodec } from 'hyparquet';
import { snappyCompress } from 'hyparquet-writer/src/snappy.js';
import { compressSync as lz4CompressSync } from 'lz4-napi';
import type { ParquetCompression } from '../encoder.ts';

/** How pages are compressed, and what Parquet calls it. */
export interface Codec {
  readonly name: CompressionCodec;
  /** The compressed bytes; they may be the page's own. */
  readonly compress: (page: Buffer) => Uint8Array;
  /** Whether the compressed bytes have memory to themselves, which may be given back as soon as they were copied. */
  readonly hasOwnMemory: boolean;
}

/** Memory for all that comes of a page, so that zlib makes one piece of it; what is not written to costs nothing. */
const chunkSizeFor = (page: Buffer): number => page.length + 64 * 1024;

const codecs: Record<ParquetCompression, Codec> = {
  zstd: {
    name: 'ZSTD',
    hasOwnMemory: true,
    compress: (page) =>
      zstdCompressSync(page, {
        chunkSize: chunkSizeFor(page),
        params: { [constants.ZSTD_c_compressionLevel]: 3 },
      }),
  },
  snappy: { name: 'SNAPPY', hasOwnMemory: true, compress: snappyCompress },
  gzip: {
    name: 'GZIP',
    hasOwnMemory: true,
    compress: (page) => gzipSync(page, { chunkSize: chunkSizeFor(page), level: 6, memLevel: 9 }),
  },
  brotli: {
    name: 'BROTLI',
    hasOwnMemory: true,
    compress: (page) =>
      brotliCompressSync(page, {
        chunkSize: chunkSizeFor(page),
        params: { [constants.BROTLI_PARAM_QUALITY]: 4, [constants.BROTLI_PARAM_SIZE_HINT]: page.length },
      }),
  },
  // The library puts the length of the page in front, which Parquet keeps in the page's header.
  lz4: { name: 'LZ4_RAW', hasOwnMemory: false, compress: (page) => lz4CompressSync(page).subarray(4) },
};

const uncompressed: Codec = { name: 'UNCOMPRESSED', hasOwnMemory: false, compress: (page) => page };

/** How the pages of a file with this compression are made. */
export const codecOf = (compression: ParquetCompression | null): Codec =>
  compression === null ? uncompressed : codecs[compression];
