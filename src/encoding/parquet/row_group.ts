import type { ExportedColumn } from '../../source/source.ts';
import type { UnrepresentableValue } from '../unrepresentable_value.ts';
import type { ParquetCompression } from '../encoder.ts';
import {
  createColumnEncoder,
  createColumnMemory,
  type ColumnMemory,
  type EncodedColumn,
} from './column_chunk.ts';
import { codecOf } from './compression.ts';
import { createFieldIndex, type IndexMemory } from './field_index.ts';
import type { RowGroup } from './row_group_state.ts';

/** So many bytes of rows stay in the processor's cache while all their columns are taken in. */
const batchBytes = 512 * 1024;
/** Beyond this much memory for pages, or for the index, all is given back after the block. */
const keptPageBytes = 64 * 1024 * 1024;
const keptFields = 4 * 1024 * 1024;

interface Memory {
  readonly index: IndexMemory;
  readonly columns: ColumnMemory[];
}

const createMemory = (): Memory => ({
  index: { positions: new Int32Array(0), present: new Uint8Array(0) },
  columns: [],
});

let memory = createMemory();

/** Rows as Parquet has them, and what has to be kept of them until the footer is written. */
export interface EncodedRowGroup {
  /** The row group's bytes, in memory of their own; none when it has no rows. */
  readonly bytes: Buffer<ArrayBuffer>;
  readonly rowGroup: RowGroup;
}

/**
 * Encodes a block of rows (see `RowBlock`) as one row group: every column OPTIONAL, data pages of about 1 MiB, or as large
 * as a larger value needs. The same block always makes the same bytes. Besides the block there are in memory the compressed
 * pages, and of each column one page and a dictionary of at most 1 MiB.
 * @param onBadValue takes note of a row that Parquet cannot hold (its time is infinite or after the year 294246), which is
 * then left out; or throws, and ends the encoding
 * @throws MalformedBlock
 */
export function encodeRowGroup(
  block: Buffer,
  rows: number,
  columns: readonly ExportedColumn[],
  compression: ParquetCompression | null,
  onBadValue: (bad: UnrepresentableValue) => void,
): EncodedRowGroup {
  try {
    const index = createFieldIndex(block, rows, columns, memory.index, onBadValue);
    const codec = codecOf(compression);
    const shown = index.columns.filter(({ column }) => column.hidden !== true);
    const encoders = shown.map((values, position) =>
      createColumnEncoder(values, codec, (memory.columns[position] ??= createColumnMemory())),
    );
    while (index.advance(batchBytes)) for (const encoder of encoders) encoder.take();
    const encoded = index.rows === 0 ? [] : encoders.map((encoder) => encoder.finish(index.rows));
    return {
      bytes: joined(encoded),
      rowGroup: { rows: index.rows, columns: encoded.map(({ chunk }) => chunk) },
    };
  } finally {
    const pages = memory.columns.reduce(
      (sum, { page, output }) => sum + page.bytes.length + output.bytes.length,
      0,
    );
    if (pages > keptPageBytes || memory.index.positions.length > keptFields) memory = createMemory();
  }
}

function joined(columns: readonly EncodedColumn[]): Buffer<ArrayBuffer> {
  const length = columns.reduce((sum, { bytes }) => sum + bytes.length, 0);
  const joint = Buffer.allocUnsafeSlow(length);
  let at = 0;
  for (const { bytes } of columns) {
    joint.set(bytes, at);
    at += bytes.length;
  }
  return joint;
}
