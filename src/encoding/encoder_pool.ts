/** The encoders of a process: each file has one, and all share its threads. */
import { addFingerprints } from '../domain/fingerprint.ts';
import type { ExportedColumn } from '../source/row_selection.ts';
import { textEncoder } from './encode_block.ts';
import type { BlockGrouping, EncodedBlock, EncoderPool, FileEncoder } from './encoder.ts';
import { type EncoderThreads, startEncoderThreads } from './encoder_threads.ts';
import { isRowGroup, parquetEncoder, type ParquetOptions } from './parquet_encoder.ts';

/** Joins the blocks of Parquet files to row groups. */
function rowGrouping(
  encode: FileEncoder['encode'],
  threads: Pick<EncoderThreads, 'join'>,
  options: ParquetOptions,
  columns: readonly ExportedColumn[],
): BlockGrouping {
  return {
    encode,
    isComplete: isRowGroup,
    async join(blocks) {
      const { bytes, state } = await threads.join({
        options,
        columns,
        blocks: blocks.map((block) => ({ bytes: bytesOf(block), state: block.state })),
      });
      return { ...summaryOf(blocks), bytes: Buffer.from(bytes.buffer), state };
    },
  };
}

/** The bytes of a block, which has a separate buffer. */
const bytesOf = ({ bytes }: EncodedBlock): Uint8Array<ArrayBuffer> =>
  bytes.buffer instanceof ArrayBuffer
    ? new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.length)
    : new Uint8Array(bytes);

/** Rows, fingerprints and keys of consecutive blocks. @throws RangeError without blocks */
function summaryOf(blocks: readonly EncodedBlock[]): Omit<EncodedBlock, 'bytes' | 'state'> {
  const [first] = blocks;
  const last = blocks.at(-1);
  if (!first || !last) throw new RangeError('There are no blocks to join.');
  const others = blocks.slice(1);
  return {
    rows: blocks.reduce((sum, { rows }) => sum + rows, 0),
    fingerprint: others.reduce((sum, block) => addFingerprints(sum, block.fingerprint), first.fingerprint),
    rejected_fingerprint: others.reduce(
      (sum, block) => addFingerprints(sum, block.rejected_fingerprint),
      first.rejected_fingerprint,
    ),
    rejected: blocks.flatMap(({ rejected }) => rejected),
    first: first.first,
    last: last.last,
    joined: blocks.map(({ rows, rejected }) => rows + rejected.length),
  };
}

/** Two pages: one that is read while the other one is encoded. */
const defaultUnusedBlockBytes = 16 * 1024 * 1024;

/** Creates the encoder pool of a process. Each thread starts when it is first needed, or warmed up. */
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
          : encoderThreads.runHeld({ ...task, thread: block.thread, held: block.held, bytes: block.bytes }));
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
    warmUp: () => encoderThreads.warmUp(),
    close: () => encoderThreads.close(),
  };
}
