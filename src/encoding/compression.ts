import { finished } from 'node:stream/promises';
import { constants, crc32, createBrotliCompress, deflateRawSync, zstdCompressSync } from 'node:zlib';
import type {
  EncodedBlock,
  EncoderState,
  FileAssembly,
  ParquetCompression,
  TextCompression,
} from './encoder.ts';

/** The levels of a compression: from the fastest to the smallest, and the one that is used by default. */
interface CompressionLevels {
  readonly lowest: number;
  readonly highest: number;
  readonly usual: number;
}

type Compression = TextCompression | ParquetCompression;
type CompressionWithLevels = 'gzip' | 'zstd' | 'brotli';

const levels: Readonly<Record<CompressionWithLevels, CompressionLevels>> = {
  gzip: { lowest: 1, highest: 9, usual: 5 },
  // Files of higher levels need more memory than readers allow by default.
  zstd: { lowest: 1, highest: 19, usual: 1 },
  brotli: { lowest: 0, highest: 11, usual: 4 },
};

const hasLevels = (compression: Compression): compression is CompressionWithLevels => compression in levels;

/** The levels of a compression; null when it has none. */
export const levelsOf = (compression: Compression): CompressionLevels | null =>
  hasLevels(compression) ? levels[compression] : null;

/** The given level, or the usual one of the compression. */
export const levelOf = (compression: CompressionWithLevels, given: number | null | undefined): number =>
  given ?? levels[compression].usual;

/** The name of a compression with its level, as the identity of an encoder contains it: `gzip-5`, `snappy`. */
export const nameWithLevel = (compression: Compression, given: number | null | undefined): string =>
  hasLevels(compression) ? `${compression}-${levelOf(compression, given)}` : compression;

/**
 * The end of an encoder's identity: the library of Node whose version determines the compressed bytes, with its version.
 * Compressions without levels are dependencies of exportd.
 */
export function libraryVersion(compression: Compression | null): string {
  if (compression === null || !hasLevels(compression)) return '';
  const library = compression === 'gzip' ? 'zlib' : compression;
  return ` ${library}/${process.versions[library] ?? 'unknown'}`;
}

/** Formats a CRC-32 as the journal and manifests store it: eight hexadecimal digits. */
export const formatCrc32 = (checksum: number): string => checksum.toString(16).padStart(8, '0');

/** The CRC-32 polynomial in reversed bit order. */
const polynomial = 0xedb8_8320;

/**
 * The product of two polynomials modulo the CRC-32 polynomial, in reversed bit order: the highest bit is the
 * coefficient of 1.
 */
function multiply(left: number, right: number): number {
  let product = 0;
  let factor = right;
  for (let bit = 0x8000_0000; bit !== 0; bit >>>= 1) {
    if ((left & bit) !== 0) product ^= factor;
    factor = (factor & 1) === 1 ? (factor >>> 1) ^ polynomial : factor >>> 1;
  }
  return product >>> 0;
}

/** x^(2^n) for n from 0 to 31, after which the powers repeat. */
const powers: number[] = [0x4000_0000];
while (powers.length < 32) powers.push(multiply(powers.at(-1) ?? 0, powers.at(-1) ?? 0));

/**
 * The CRC-32 of two concatenated byte strings, from their CRC-32s and the length of the second in bytes. It allows
 * compressing blocks in several threads and joining them to one gzip member.
 */
export function combineCrc32(first: number, second: number, secondLength: number): number {
  // Appending n bytes multiplies the first remainder by x^(8n). The bits of n select the powers, from x^(2^3).
  let shift = 0x8000_0000;
  let rest = secondLength;
  for (let power = 3; rest > 0; power += 1) {
    if (rest % 2 === 1) shift = multiply(powers[power % 32] ?? 0, shift);
    rest = Math.floor(rest / 2);
  }
  return (multiply(shift, first) ^ second) >>> 0;
}

/** CRC-32 and length in bytes of a section of a file's uncompressed text. */
type TextState = {
  readonly crc32: number;
  readonly length: number;
};

/** The state of an empty text. */
const emptyText: TextState = { crc32: 0, length: 0 };

/** The state of these bytes. */
export const textStateOf = (text: Buffer): TextState => ({ crc32: crc32(text), length: text.length });

/** The state of two concatenated sections. */
const concatenateStates = (first: TextState, second: TextState): TextState => ({
  crc32: combineCrc32(first.crc32, second.crc32, second.length),
  length: first.length + second.length,
});

/** Parses a journaled state. @throws TypeError when it is not the state of a text */
function parseTextState(state: EncoderState): TextState {
  if (typeof state === 'object' && state !== null && 'crc32' in state && 'length' in state) {
    const { crc32: checksum, length } = state;
    if (typeof checksum === 'number' && typeof length === 'number') return { crc32: checksum, length };
  }
  throw new TypeError('The state of a part is not a text state.');
}

/** A chunk size that holds the whole output, so that zlib returns it in one chunk. Unused memory costs nothing. */
export const chunkSizeFor = (input: Buffer): number => input.length + 64 * 1024;

/** Compresses blocks of text separately, in any thread, so that the concatenated results are one file. */
interface ConcatenableCompression {
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

/** Joins blocks of text that were compressed separately. @param fileHeader the text before the first row */
export function assembleText(
  compression: ConcatenableCompression,
  fileHeader: Buffer,
  resumed: readonly EncoderState[],
): FileAssembly {
  let whole = resumed.map(parseTextState).reduce(concatenateStates, emptyText);
  let pending = emptyText;
  let lastBlock = emptyText;
  let started = resumed.length > 0;

  /** Adds a block. The file header belongs to the first one. */
  const add = (state: TextState): void => {
    whole = concatenateStates(whole, state);
    pending = concatenateStates(pending, lastBlock);
    lastBlock = state;
  };
  /** The compressed file header and its state, before the first block only. */
  const start = (): { readonly chunks: Buffer[]; readonly state: TextState } => {
    if (started) return { chunks: [], state: emptyText };
    started = true;
    const chunks = [compression.header, ...(fileHeader.length > 0 ? [compression.compress(fileHeader)] : [])];
    return { chunks, state: textStateOf(fileHeader) };
  };

  return {
    append(block: EncodedBlock) {
      const { chunks, state } = start();
      add(concatenateStates(state, parseTextState(block.state)));
      return Promise.resolve(concatenated([...chunks, block.bytes]));
    },
    takeState({ exceptLast } = { exceptLast: false }) {
      const taken = exceptLast ? { ...pending } : concatenateStates(pending, lastBlock);
      pending = emptyText;
      if (!exceptLast) lastBlock = emptyText;
      return taken;
    },
    finish() {
      const { chunks, state } = start();
      if (chunks.length > 0) add(state);
      return Promise.resolve(concatenated([...chunks, compression.trailer(whole)]));
    },
    close: () => undefined,
  };
}

const concatenated = (chunks: readonly Buffer[]): Buffer =>
  chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks);

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
