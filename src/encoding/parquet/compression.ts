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
}

const chunkSize = 64 * 1024;

const codecs: Record<ParquetCompression, Codec> = {
  zstd: {
    name: 'ZSTD',
    compress: (page) =>
      zstdCompressSync(page, { chunkSize, params: { [constants.ZSTD_c_compressionLevel]: 3 } }),
  },
  snappy: { name: 'SNAPPY', compress: snappyCompress },
  gzip: { name: 'GZIP', compress: (page) => gzipSync(page, { chunkSize, level: 6, memLevel: 9 }) },
  brotli: {
    name: 'BROTLI',
    compress: (page) =>
      brotliCompressSync(page, {
        chunkSize,
        params: { [constants.BROTLI_PARAM_QUALITY]: 4, [constants.BROTLI_PARAM_SIZE_HINT]: page.length },
      }),
  },
  // The library puts the length of the page in front, which Parquet keeps in the page's header.
  lz4: { name: 'LZ4_RAW', compress: (page) => lz4CompressSync(page).subarray(4) },
};

const uncompressed: Codec = { name: 'UNCOMPRESSED', compress: (page) => page };

export const codecOf = (compression: ParquetCompression | null): Codec =>
  compression === null ? uncompressed : codecs[compression];
