import type { EncoderPool } from './encoder.ts';
import { startEncoderThreads } from './encoder_threads.ts';
import { parquetEncoder } from './parquet_encoder.ts';
import { textEncoder } from './text_encoder.ts';

/** Creates the encoder pool of a process. Each thread starts when it is first needed. */
export function createEncoderPool({ threads }: { threads: number }): EncoderPool {
  const encoderThreads = startEncoderThreads(threads);
  return {
    fileEncoder(options, columns) {
      return {
        ...(options.file_format === 'Parquet'
          ? parquetEncoder(options, columns)
          : textEncoder(options, columns)),
        async encode({ columns: read, block, rows, first, last, fingerprint }) {
          const encoded = await encoderThreads.run({ options, columns: read, block, rows, fingerprint });
          return {
            bytes: Buffer.from(encoded.bytes.buffer),
            rows: encoded.rows,
            fingerprint: encoded.fingerprint,
            rejected_fingerprint: encoded.rejected_fingerprint,
            rejected: encoded.rejected,
            first,
            last,
            state: encoded.state,
          };
        },
      };
    },
    close: () => encoderThreads.close(),
  };
}
