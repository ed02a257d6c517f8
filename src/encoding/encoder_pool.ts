import type { ExportedColumn } from '../source/source.ts';
import type { EncoderPool, EncodingOptions, FileEncoder } from './encoder.ts';
import { startEncoderThreads, type EncoderThreads } from './encoder_threads.ts';
import { assembleText, gzipFraming, plainFraming } from './text_file.ts';

/** Bytes of rows in a block of text: so small that two threads never wait long for work. */
const textBlockBytes = 2 * 1024 * 1024;

/** Starts the encoder threads of a process (each when it is first needed). */
export function createEncoderPool({ threads }: { threads: number }): EncoderPool {
  const running = startEncoderThreads(threads);
  return {
    fileEncoder: (options, columns) => jsonLinesEncoder(running, options, columns),
    close: () => running.close(),
  };
}

function jsonLinesEncoder(
  threads: EncoderThreads,
  options: EncodingOptions,
  columns: readonly ExportedColumn[],
): FileEncoder {
  const gzip = options.compression === 'gzip';
  return {
    identity: gzip ? 'jsonlines+gzip/1' : 'jsonlines/1',
    extension: gzip ? 'jsonl.gz' : 'jsonl',
    contentType: gzip ? 'application/gzip' : 'application/jsonl',
    resumable: true,
    blockBytes: textBlockBytes,
    async encode({ block, rows, first, last }) {
      const { bytes, text } = await threads.run({ options, columns, block, rows });
      return { bytes: Buffer.from(bytes.buffer), rows, rejected: [], first, last, state: { ...text } };
    },
    assemble: (resumed) => assembleText(gzip ? gzipFraming : plainFraming, resumed),
  };
}
