import { constants, deflateRawSync, zstdCompressSync } from 'node:zlib';
import { levelOf } from './compression_levels.ts';
import type { TextCompression } from './encoder.ts';
import type { TextState } from './text_state.ts';

/** A chunk size that holds the whole output, so that zlib returns it in one chunk. Unused memory costs nothing. */
const chunkSizeFor = (text: Buffer): number => text.length + 64 * 1024;

/** Compresses blocks of text separately, in any thread, so that the concatenated results are one file. */
export interface ConcatenableCompression {
  readonly header: Buffer;
  compress(text: Buffer): Buffer;
  /** The bytes that end a file with this text. */
  trailer(text: TextState): Buffer;
}

const nothing = Buffer.alloc(0);

const plain: ConcatenableCompression = {
  header: nothing,
  compress: (text) => text,
  trailer: () => nothing,
};

/** One gzip member, which every reader accepts: header, deflate blocks, an empty final block, CRC, length. */
const gzip = (level: number): ConcatenableCompression => ({
  // Neither name nor time, so that the same rows make the same file. 255: unknown system.
  header: Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255]),
  compress: (text) =>
    deflateRawSync(text, {
      level,
      memLevel: 9,
      chunkSize: chunkSizeFor(text),
      // Ends on a byte boundary and resets the dictionary, so that the next block can come from any thread.
      finishFlush: constants.Z_FULL_FLUSH,
    }),
  trailer({ crc32, length }) {
    const bytes = Buffer.alloc(10);
    bytes[0] = 3;
    bytes.writeUInt32LE(crc32, 2);
    bytes.writeUInt32LE(length % 0x1_0000_0000, 6);
    return bytes;
  },
});

/** One frame per block. Readers accept concatenated frames as one file. */
function zstd(level: number): ConcatenableCompression {
  const compress = (text: Buffer): Buffer =>
    zstdCompressSync(text, {
      chunkSize: chunkSizeFor(text),
      params: { [constants.ZSTD_c_compressionLevel]: level, [constants.ZSTD_c_checksumFlag]: 1 },
    });
  return {
    header: nothing,
    compress,
    // A file without a frame is not valid zstd.
    trailer: ({ length }) => (length === 0 ? compress(nothing) : nothing),
  };
}

/** The compression of the options `compression` and `compression_level`. Brotli is missing because it needs one stream per file. */
export function concatenableCompression(
  compression: Exclude<TextCompression, 'brotli'> | null,
  level?: number | null,
): ConcatenableCompression {
  if (compression === null) return plain;
  return { gzip, zstd }[compression](levelOf(compression, level));
}
