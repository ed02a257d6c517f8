import { constants, deflateRawSync, zstdCompressSync } from 'node:zlib';
import type { TextCompression } from './encoder.ts';
import type { TextState } from './text_state.ts';

/** Memory for all that comes of a text, so that zlib makes one piece of it; what is not written to costs nothing. */
const chunkSizeFor = (text: Buffer): number => text.length + 64 * 1024;

/** How blocks of a text are compressed one by one, in any thread, so that laid end to end they make one file. */
export interface ConcatenableCompression {
  readonly opening: Buffer;
  compress(text: Buffer): Buffer;
  /** What ends a file with this text. */
  closing(text: TextState): Buffer;
}

const nothing = Buffer.alloc(0);

const plain: ConcatenableCompression = {
  opening: nothing,
  compress: (text) => text,
  closing: () => nothing,
};

/** One gzip member, so that every reader takes the file: header, deflate blocks, an empty final block, CRC, length. */
const gzip: ConcatenableCompression = {
  // No name and no time, so that the same rows make the same file; 255: an unknown system.
  opening: Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255]),
  compress: (text) =>
    deflateRawSync(text, {
      level: 6,
      memLevel: 9,
      chunkSize: chunkSizeFor(text),
      // Ends on a whole byte and forgets what came before, so that the next block may come from any thread.
      finishFlush: constants.Z_FULL_FLUSH,
    }),
  closing({ crc32, length }) {
    const bytes = Buffer.alloc(10);
    bytes[0] = 3;
    bytes.writeUInt32LE(crc32, 2);
    bytes.writeUInt32LE(length % 0x1_0000_0000, 6);
    return bytes;
  },
};

/** A frame for each block; readers take frames laid end to end for one file. */
const zstd: ConcatenableCompression = {
  opening: nothing,
  compress: (text) =>
    zstdCompressSync(text, {
      chunkSize: chunkSizeFor(text),
      params: { [constants.ZSTD_c_compressionLevel]: 3, [constants.ZSTD_c_checksumFlag]: 1 },
    }),
  // No frame at all is no zstd file.
  closing: ({ length }) => (length === 0 ? zstd.compress(nothing) : nothing),
};

/** By the option `compression`, but for brotli, which makes one stream of a file. */
export const concatenableCompression = (
  compression: Exclude<TextCompression, 'brotli'> | null,
): ConcatenableCompression => (compression === null ? plain : { gzip, zstd }[compression]);
