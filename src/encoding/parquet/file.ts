import type {
  ColumnChunk as ColumnChunkMetadata,
  ColumnMetaData,
  Encoding,
  RowGroup as RowGroupMetadata,
  SchemaElement,
  Statistics,
} from 'hyparquet';
import { ByteWriter } from 'hyparquet-writer';
import { writeMetadata } from 'hyparquet-writer/src/metadata.js';
import { serializeTCompactProtocol } from 'hyparquet-writer/src/thrift.js';
import type { ExportedColumn } from '../../source/row_selection.ts';
import { nameWithLevel } from '../compression.ts';
import type { ParquetCompression } from '../encoder.ts';
import { codecOf } from './compression.ts';
import { compareBounds, type ValueRange } from './page_range.ts';
import { type FileColumn, fileColumns, type FileColumnType } from './file_columns.ts';
import type { PageOptions } from './row_group.ts';
import type { ColumnChunk, RowGroup } from './row_group_state.ts';

/** `converted_type` is included for readers that do not know logical types. */
const elements: Record<FileColumnType, Omit<SchemaElement, 'name'>> = {
  text: { type: 'BYTE_ARRAY', converted_type: 'UTF8', logical_type: { type: 'STRING' } },
  // Not as JSON, which polars returns as bytes.
  json: { type: 'BYTE_ARRAY', converted_type: 'UTF8', logical_type: { type: 'STRING' } },
  timestamp: {
    type: 'INT64',
    converted_type: 'TIMESTAMP_MICROS',
    logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MICROS' },
  },
  date: { type: 'INT32', converted_type: 'DATE', logical_type: { type: 'DATE' } },
  bigint: { type: 'INT64' },
  integer: { type: 'INT32' },
  double: { type: 'DOUBLE' },
  boolean: { type: 'BOOLEAN' },
};

/** The schema element of a column. Every column is nullable. */
const schemaElementOf = ({ name, type }: FileColumn): SchemaElement => ({
  ...elements[type],
  name,
  repetition_type: 'OPTIONAL',
});

/** Where the index of a column chunk is stored, as its metadata says. */
interface IndexLocation {
  column_index_offset?: bigint;
  column_index_length?: number;
  offset_index_offset?: bigint;
  offset_index_length?: number;
}

/** A column chunk whose pages are indexed. */
interface IndexedChunk {
  readonly column: FileColumn;
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
function writePageIndex(writer: ByteWriter, writerAt: number, chunks: readonly IndexedChunk[]): void {
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
  { type }: FileColumn,
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

const magic = Buffer.from('PAR1');

/** The identity of the encoder. The version changes when the same rows make other bytes. */
export const parquetIdentity = (options: PageOptions): string => {
  const { compression, compression_level, bloom_filters } = options;
  const compressed = compression === null ? '' : `+${nameWithLevel(compression, compression_level)}`;
  return `parquet${compressed}/3${bloom_filters ? ' bloom filters' : ''}`;
};

/** Whether an encoder with this identity writes Parquet, so that a table can have its files. */
export const writesParquet = (identity: string): boolean => /^parquet[+/]/.test(identity);

/** The bytes before the first row group. */
export const parquetHeader = (): Buffer => Buffer.from(magic);

/**
 * The bytes after the last row group. They depend only on the metadata of the row groups, which follow the header in
 * this order. So another process can finish a file.
 */
export function parquetFooter(
  given: readonly ExportedColumn[],
  compression: ParquetCompression | null,
  rowGroups: readonly RowGroup[],
): Buffer {
  const columns = fileColumns(given);
  let at = magic.length;
  const row_groups: RowGroupMetadata[] = [];
  const indexed: IndexedChunk[] = [];
  for (const { rows, columns: chunks, sorted } of rowGroups) {
    if (rows === 0) continue;
    const rowGroupAt = at;
    let uncompressed = 0;
    const described = columns.map((column, index) => {
      const chunk = chunks[index];
      if (!chunk) throw new TypeError(`A row group has no column ${column.name}.`);
      const meta_data = columnMetadata(column, chunk, compression, rows, at);
      const location: ColumnChunkMetadata = { file_offset: 0n, meta_data };
      indexed.push({ column, chunk, pagesAt: at + (chunk.dictionary ?? 0), location });
      at += chunk.compressed;
      uncompressed += chunk.uncompressed;
      return location;
    });
    const chunksEnd = at;
    described.forEach(({ meta_data }, index) => {
      const { filter } = chunks[index] ?? {};
      if (!meta_data || filter === undefined) return;
      meta_data.bloom_filter_offset = BigInt(at);
      meta_data.bloom_filter_length = filter;
      at += filter;
    });
    row_groups.push({
      columns: described,
      total_byte_size: BigInt(uncompressed),
      num_rows: BigInt(rows),
      file_offset: BigInt(rowGroupAt),
      total_compressed_size: BigInt(chunksEnd - rowGroupAt),
      ...(sorted.length > 0 && { sorting_columns: sorted.map(ascending) }),
    });
  }
  const writer = new ByteWriter();
  writePageIndex(writer, at, indexed);
  writeMetadata(writer, {
    version: 2,
    schema: [{ name: 'schema', num_children: columns.length }, ...columns.map(schemaElementOf)],
    num_rows: row_groups.reduce((sum, { num_rows }) => sum + num_rows, 0n),
    row_groups,
    created_by: 'exportd',
    // Set by the writer.
    metadata_length: 0,
  });
  return Buffer.concat([writer.getBytes(), magic]);
}

function columnMetadata(
  column: FileColumn,
  chunk: ColumnChunk,
  compression: ParquetCompression | null,
  rows: number,
  chunkAt: number,
): ColumnMetaData {
  const { type = 'BYTE_ARRAY' } = schemaElementOf(column);
  const encodings: Encoding[] =
    chunk.dictionary === undefined ? ['PLAIN', 'RLE'] : ['PLAIN', 'RLE', 'RLE_DICTIONARY'];
  return {
    type,
    encodings,
    path_in_schema: [column.name],
    codec: codecOf(compression).name,
    num_values: BigInt(rows),
    total_uncompressed_size: BigInt(chunk.uncompressed),
    total_compressed_size: BigInt(chunk.compressed),
    data_page_offset: BigInt(chunkAt + (chunk.dictionary ?? 0)),
    ...(chunk.dictionary === undefined ? {} : { dictionary_page_offset: BigInt(chunkAt) }),
    statistics: {
      null_count: BigInt(chunk.nulls),
      ...(chunk.range && boundsOf(column.type, chunk.range)),
    },
  };
}

/** A bound that was cut is none of the values. */
function boundsOf(type: FileColumnType, { min, max, cut }: ValueRange): Statistics {
  const is_exact = cut !== true;
  return {
    min_value: boundOf(type, Buffer.from(min, 'base64')),
    max_value: boundOf(type, Buffer.from(max, 'base64')),
    is_min_value_exact: is_exact,
    is_max_value_exact: is_exact,
  };
}

/** A bound as the writer expects it. */
function boundOf(type: FileColumnType, bytes: Buffer): NonNullable<Statistics['min_value']> {
  switch (type) {
    case 'text':
    case 'json':
      return new Uint8Array(bytes);
    case 'timestamp':
    case 'bigint':
      return bytes.readBigInt64LE();
    case 'integer':
    case 'date':
      return bytes.readInt32LE();
    case 'double':
      return bytes.readDoubleLE();
    case 'boolean':
      return bytes[0] === 1;
  }
}

const ascending = (column_idx: number) => ({ column_idx, descending: false, nulls_first: false });
