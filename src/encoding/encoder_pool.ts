import type { HeldBlock } from '../source/source.ts';
import type { EncoderPool } from './encoder.ts';
import { startEncoderThreads } from './encoder_threads.ts';
import { parquetEncoder } from './parquet_encoder.ts';
import { textEncoder } from './text_encoder.ts';

/** Two pages: one that is read while the other one is encoded. */
const defaultUnusedBlockBytes = 32 * 1024 * 1024;

/** Creates the encoder pool of a process. Each thread starts when it is first needed. */
export function createEncoderPool({
  threads,
  unusedBlockBytes = defaultUnusedBlockBytes,
}: {
  readonly threads: number;
  /** How much unused memory each thread keeps for the next blocks. */
  readonly unusedBlockBytes?: number;
}): EncoderPool {
  const encoderThreads = startEncoderThreads({ count: threads, unusedBlockBytes });
  return {
    fileEncoder(options, columns) {
      return {
        ...(options.file_format === 'Parquet'
          ? parquetEncoder(options, columns)
          : textEncoder(options, columns)),
        async encode(block) {
          const { columns: read, rows, first, last, fingerprint } = block;
          const task = { options, columns: read, rows, fingerprint };
          const encoded = await ('block' in block
            ? encoderThreads.run({ ...task, block: block.block })
            : encoderThreads.runHeld({ ...task, ...placeOf(block) }));
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
    pageThreads: encoderThreads,
    close: () => encoderThreads.close(),
  };
}

const placeOf = ({ thread, held, bytes }: HeldBlock) => ({ thread, held, bytes });
