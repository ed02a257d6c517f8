import type {
  ColumnChunk as ColumnChunkMetadata,
  ColumnMetaData,
  Encoding,
  RowGroup as RowGroupMetadata,
  Statistics,
} from 'hyparquet';
import { ByteWriter } from 'hyparquet-writer';
import { writeMetadata } from 'hyparquet-writer/src/metadata.js';
import type { ColumnType, ExportedColumn } from '../../source/columns.ts';
import { nameWithLevel } from '../compression_levels.ts';
import type { ParquetCompression } from '../encoder.ts';
import { codecOf } from './compression.ts';
import type { ValueRange } from './page_range.ts';
import { writePageIndex, type IndexedChunk } from './page_index.ts';
import { schemaElementOf } from './schema.ts';
import type { PageOptions } from './row_group.ts';
import type { ColumnChunk, RowGroup } from './row_group_state.ts';

const magic = Buffer.from('PAR1');

/** The identity of the encoder. The version changes when the same rows make other bytes. */
export const parquetIdentity = ({ compression, compression_level, bloom_filters }: PageOptions): string => {
  const compressed = compression === null ? '' : `+${nameWithLevel(compression, compression_level)}`;
  return `parquet${compressed}/2${bloom_filters ? ' bloom filters' : ''}`;
};

/** The bytes before the first row group. */
export const parquetHeader = (): Buffer => Buffer.from(magic);

/**
 * The bytes after the last row group. They depend only on the metadata of the row groups, which follow the header in
 * this order. So another process can finish a file.
 */
export function parquetFooter(
  columns: readonly ExportedColumn[],
  compression: ParquetCompression | null,
  rowGroups: readonly RowGroup[],
): Buffer {
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
  column: ExportedColumn,
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
function boundsOf(type: ColumnType, { min, max, cut }: ValueRange): Statistics {
  const is_exact = cut !== true;
  return {
    min_value: boundOf(type, Buffer.from(min, 'base64')),
    max_value: boundOf(type, Buffer.from(max, 'base64')),
    is_min_value_exact: is_exact,
    is_max_value_exact: is_exact,
  };
}

/** A bound as the writer expects it. */
function boundOf(type: ColumnType, bytes: Buffer): NonNullable<Statistics['min_value']> {
  switch (type) {
    case 'text':
    case 'json':
    case 'uuid':
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
