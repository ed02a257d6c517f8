import type { ExportedColumn } from '../source/source.ts';
import type { EncodingOptions, FileEncoder } from './encoder.ts';
import { libraryVersion } from './library_versions.ts';
import { parquetIdentity } from './parquet/file.ts';
import { assembleParquet } from './parquet_assembler.ts';

export type ParquetOptions = Extract<EncodingOptions, { file_format: 'Parquet' }>;

/** Block size in bytes of rows. A block becomes a row group. */
const blockBytes = 8 * 1024 * 1024;

/** The encoder of Parquet files, without the encoding of blocks, which runs in threads. */
export const parquetEncoder = (
  { compression, compression_level }: ParquetOptions,
  columns: readonly ExportedColumn[],
): Omit<FileEncoder, 'encode'> => ({
  identity: `${parquetIdentity(compression, compression_level)}${libraryVersion(compression)}`,
  extension: 'parquet',
  contentType: 'application/vnd.apache.parquet',
  resumable: true,
  blockBytes,
  assemble: (resumed) => assembleParquet(columns, compression, resumed),
});
