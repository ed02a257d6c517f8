import type { ExportedColumn } from '../source/columns.ts';
import type { EncodedBlock, EncodingOptions, FileEncoder } from './encoder.ts';
import { libraryVersion } from './library_versions.ts';
import { parquetIdentity } from './parquet/file.ts';
import { assembleParquet } from './parquet_assembler.ts';

export type ParquetOptions = Extract<EncodingOptions, { file_format: 'Parquet' }>;

/** Block size in bytes of rows. */
const blockBytes = 8 * 1024 * 1024;

/** The encoder of Parquet files, without the encoding of blocks, which runs in threads. */
export const parquetEncoder = (
  options: ParquetOptions,
  columns: readonly ExportedColumn[],
): Omit<FileEncoder, 'encode' | 'grouping'> => ({
  identity: `${parquetIdentity(options)}${libraryVersion(options.compression)}`,
  extension: 'parquet',
  contentType: 'application/vnd.apache.parquet',
  resumable: true,
  blockBytes,
  assemble: (resumed) => assembleParquet(columns, options.compression, resumed),
});

/** A row group ends with the block that reaches one of these: the size of row groups in DuckDB, and of Parquet for Java. */
const maxRows = 122_880;
const maxBytes = 64 * 1024 * 1024;

/** Whether the blocks are enough for a row group. */
export function isRowGroup(blocks: readonly EncodedBlock[]): boolean {
  const rows = blocks.reduce((sum, block) => sum + block.rows, 0);
  const bytes = blocks.reduce((sum, { uncompressed = 0 }) => sum + uncompressed, 0);
  return rows >= maxRows || bytes >= maxBytes;
}
