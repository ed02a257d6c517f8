import type { ExportedColumn } from '../../source/source.ts';
import type { ParquetCompression } from '../encoder.ts';
import { createGrowingBuffer } from '../growing_buffer.ts';
import { refuseRow, type BadValue } from './bad_value.ts';
import { encodeColumn, type ColumnMemory } from './column_chunk.ts';
import { codecOf } from './compression.ts';
import { createDictionaryMemory } from './dictionary.ts';
import { indexBlock, type IndexMemory } from './field_index.ts';
import type { ColumnChunk, RowGroup } from './row_group_state.ts';

const initialPage = 2 * 1024 * 1024;
/** Beyond this the memory for pages, or for the index, is given back after the block. */
const keptPage = 8 * 1024 * 1024;
const keptFields = 4 * 1024 * 1024;

interface Memory {
  readonly index: IndexMemory;
  readonly column: ColumnMemory;
}

const createMemory = (): Memory => ({
  index: { positions: new Int32Array(0), present: new Uint8Array(0) },
  column: {
    page: createGrowingBuffer(initialPage),
    dictionary: createDictionaryMemory(createGrowingBuffer(initialPage / 2)),
  },
});

let memory = createMemory();

/** Rows as Parquet has them, and what has to be kept of them until the footer is written. */
export interface EncodedRowGroup {
  /** The row group's bytes, in memory of their own; none when it has no rows. */
  readonly bytes: Buffer<ArrayBuffer>;
  readonly rowGroup: RowGroup;
}

/**
 * Encodes a block of rows (see `RowBlock`) as one row group: every column OPTIONAL, data pages of about 1 MiB, a larger
 * value in a page of its own. The same block always makes the same bytes. Column after column is written, so that besides
 * the block and the compressed pages there is one page in memory.
 * @param onBadValue takes note of a row that Parquet cannot hold, which is then left out; without it such a row is refused
 * @throws RowNotEncodable for times that are infinite or after the year 294246, unless there is `onBadValue`
 * @throws MalformedBlock
 */
export function encodeRowGroup(
  block: Buffer,
  rows: number,
  columns: readonly ExportedColumn[],
  compression: ParquetCompression | null,
  onBadValue: (bad: BadValue) => void = (bad) => refuseRow(block, columns, bad),
): EncodedRowGroup {
  const codec = codecOf(compression);
  const pieces: Uint8Array[] = [];
  const chunks: ColumnChunk[] = [];
  let length = 0;
  try {
    const indexed = indexBlock(block, rows, columns, memory.index, onBadValue);
    if (indexed.rows > 0)
      for (const values of indexed.columns) {
        const encoded = encodeColumn(values, codec, memory.column);
        pieces.push(...encoded.pieces);
        chunks.push(encoded.chunk);
        length += encoded.chunk.compressed;
      }
    return { bytes: joined(pieces, length), rowGroup: { rows: indexed.rows, columns: chunks } };
  } finally {
    if (memory.column.page.bytes.length > keptPage || memory.index.positions.length > keptFields)
      memory = createMemory();
  }
}

function joined(pieces: readonly Uint8Array[], length: number): Buffer<ArrayBuffer> {
  const bytes = Buffer.allocUnsafeSlow(length);
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}
