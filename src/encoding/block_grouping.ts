import { addFingerprints } from '../domain/fingerprint.ts';
import type { ExportedColumn } from '../source/columns.ts';
import type { BlockGrouping, EncodedBlock, FileEncoder } from './encoder.ts';
import type { EncoderThreads } from './encoder_threads.ts';
import { isRowGroup, type ParquetOptions } from './parquet_encoder.ts';

/** Joins the blocks of Parquet files to row groups. */
export function rowGrouping(
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
