import { combineCrc32 } from './crc32_combine.ts';
import type { EncoderPool, EncoderState, EncodingOptions, FileEncoder } from './encoder.ts';
import { startEncoderThreads, type EncoderThreads } from './encoder_threads.ts';
import type { ExportedColumn } from '../source/source.ts';

/** Starts the encoder threads of a process (each when it is first needed). */
export function createEncoderPool({ threads }: { threads: number }): EncoderPool {
  const running = startEncoderThreads(threads);
  return {
    fileEncoder: (options, columns) => jsonLinesEncoder(running, options, columns),
    close: () => running.close(),
  };
}

interface Framing {
  readonly identity: string;
  readonly extension: string;
  readonly header: () => Buffer;
  readonly trailer: (state: EncoderState) => Buffer;
}

const plain: Framing = {
  identity: 'jsonlines/1',
  extension: 'jsonl',
  header: () => Buffer.alloc(0),
  trailer: () => Buffer.alloc(0),
};

/** One gzip member, so that every reader takes the file: header, deflate blocks, an empty final block, CRC, length. */
const gzip: Framing = {
  identity: 'jsonlines+gzip/1',
  extension: 'jsonl.gz',
  // No name and no time, so that the same rows make the same file; 255: an unknown system.
  header: () => Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255]),
  trailer({ crc32, length }) {
    const bytes = Buffer.alloc(10);
    bytes[0] = 3;
    bytes.writeUInt32LE(crc32, 2);
    bytes.writeUInt32LE(length % 0x1_0000_0000, 6);
    return bytes;
  },
};

function jsonLinesEncoder(
  threads: EncoderThreads,
  options: EncodingOptions,
  columns: readonly ExportedColumn[],
): FileEncoder {
  const framing = options.compression === 'gzip' ? gzip : plain;
  return {
    ...framing,
    initialState: { crc32: 0, length: 0 },
    async encode({ block, rows, first, last }) {
      const { bytes, text } = await threads.run({ options, columns, block, rows });
      return { bytes: Buffer.from(bytes.buffer), rows, first, last, text };
    },
    advance: (state, { text }) => ({
      crc32: combineCrc32(state.crc32, text.crc32, text.length),
      length: state.length + text.length,
    }),
  };
}
