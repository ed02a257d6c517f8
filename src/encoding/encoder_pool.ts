import type { HeldBlock } from '../source/source.ts';
import { rowGrouping } from './block_grouping.ts';
import type { EncoderPool, FileEncoder } from './encoder.ts';
import { startEncoderThreads } from './encoder_threads.ts';
import { parquetEncoder } from './parquet_encoder.ts';
import { textEncoder } from './text_encoder.ts';

/** Two pages: one that is read while the other one is encoded. */
const defaultUnusedBlockBytes = 16 * 1024 * 1024;

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
      const encode: FileEncoder['encode'] = async (block) => {
        const { columns: read, rows, first, last, fingerprint } = block;
        const task = { options, columns: read, rows, fingerprint };
        const uncompressed = 'block' in block ? block.block.length : block.bytes;
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
          uncompressed,
        };
      };
      if (options.file_format !== 'Parquet')
        return { ...textEncoder(options, columns), encode, grouping: null };
      const grouping = rowGrouping(encode, encoderThreads, options, columns);
      return {
        ...parquetEncoder(options, columns),
        grouping,
        encode: async (block) => grouping.join([await encode(block)]),
      };
    },
    pageThreads: encoderThreads,
    close: () => encoderThreads.close(),
  };
}

const placeOf = ({ thread, held, bytes }: HeldBlock) => ({ thread, held, bytes });
