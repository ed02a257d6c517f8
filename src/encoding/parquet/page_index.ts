import type { ByteWriter } from 'hyparquet-writer';
import { serializeTCompactProtocol } from 'hyparquet-writer/src/thrift.js';
import type { ExportedColumn } from '../../source/columns.ts';
import type { ColumnChunk, RowGroup } from './row_group_state.ts';
import { compareBounds } from './value_range.ts';

/** Where the index of a column chunk is stored, as its metadata says. */
export interface IndexLocation {
  column_index_offset?: bigint;
  column_index_length?: number;
  offset_index_offset?: bigint;
  offset_index_length?: number;
}

/** A column chunk whose pages are indexed. */
export interface IndexedChunk {
  readonly column: ExportedColumn;
  readonly chunk: ColumnChunk;
  /** The offset of its first data page in the file. */
  readonly pagesAt: number;
  /** Is filled in. */
  readonly location: IndexLocation;
}

/**
 * Writes the page index of a file between its last row group and the footer: ranges of the values of each page, then the
 * offsets of the pages.
 * @param writerAt the offset of the writer's first byte in the file
 */
export function writePageIndex(writer: ByteWriter, writerAt: number, chunks: readonly IndexedChunk[]): void {
  for (const { column, chunk, location } of chunks) {
    const at = writer.offset;
    if (!writeColumnIndex(writer, column, chunk)) continue;
    location.column_index_offset = BigInt(writerAt + at);
    location.column_index_length = writer.offset - at;
  }
  for (const { chunk, pagesAt, location } of chunks) {
    location.offset_index_offset = BigInt(writerAt + writer.offset);
    const at = writer.offset;
    writeOffsetIndex(writer, chunk, pagesAt);
    location.offset_index_length = writer.offset - at;
  }
}

const orders = { unordered: 0, ascending: 1, descending: 2 };

/** Every page with values needs a range. @returns whether the index was written */
function writeColumnIndex(
  writer: ByteWriter,
  { type }: ExportedColumn,
  { pages }: Pick<RowGroup['columns'][number], 'pages'>,
): boolean {
  if (pages.some(({ rows, nulls, range }) => nulls < rows && !range)) return false;
  const ranges = pages.map(({ range }) => range).filter((range) => range !== undefined);
  const follows = (sign: number): boolean =>
    ranges.every((range, index) => {
      const before = ranges[index - 1];
      return (
        !before ||
        (compareBounds(type, range.min, before.min) * sign >= 0 &&
          compareBounds(type, range.max, before.max) * sign >= 0)
      );
    });
  serializeTCompactProtocol(writer, {
    field_1: pages.map(({ range }) => !range),
    field_2: pages.map(({ range }) => bytesOf(range?.min)),
    field_3: pages.map(({ range }) => bytesOf(range?.max)),
    field_4: follows(1) ? orders.ascending : follows(-1) ? orders.descending : orders.unordered,
    field_5: pages.map(({ nulls }) => BigInt(nulls)),
  });
  return true;
}

const bytesOf = (bound: string | undefined): Uint8Array => new Uint8Array(Buffer.from(bound ?? '', 'base64'));

function writeOffsetIndex(writer: ByteWriter, { pages }: Pick<ColumnChunk, 'pages'>, pagesAt: number): void {
  let offset = pagesAt;
  let row = 0;
  serializeTCompactProtocol(writer, {
    field_1: pages.map(({ bytes, rows }) => {
      const location = { field_1: BigInt(offset), field_2: bytes, field_3: BigInt(row) };
      offset += bytes;
      row += rows;
      return location;
    }),
  });
}
