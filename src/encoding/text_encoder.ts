import type { ExportedColumn } from '../source/row_selection.ts';
import {
  assembleBrotli,
  assembleText,
  concatenableCompression,
  libraryVersion,
  nameWithLevel,
} from './compression.ts';
import { csv } from './csv.ts';
import type { EncodingOptions, FileEncoder, TextCompression } from './encoder.ts';
import { jsonLines } from './json_lines.ts';
import type { TextFormat } from './text_format.ts';

export type TextOptions = Exclude<EncodingOptions, { file_format: 'Parquet' }>;

/** Block size in bytes of rows, small enough to keep two threads busy. */
const blockBytes = 2 * 1024 * 1024;

/** The text formats by name. */
export const textFormats: Readonly<Record<TextOptions['file_format'], TextFormat>> = {
  JSONLines: jsonLines,
  CSV: csv,
};

/** Extensions and media types. */
const names: Readonly<Record<TextOptions['file_format'], { extension: string; contentType: string }>> = {
  JSONLines: { extension: 'jsonl', contentType: 'application/jsonl' },
  CSV: { extension: 'csv', contentType: 'text/csv; charset=utf-8; header=present' },
};

const compressedNames: Readonly<Record<TextCompression, { extension: string; contentType: string }>> = {
  gzip: { extension: 'gz', contentType: 'application/gzip' },
  zstd: { extension: 'zst', contentType: 'application/zstd' },
  brotli: { extension: 'br', contentType: 'application/x-brotli' },
};

/** The encoder of text files, without the encoding of blocks, which runs in threads. */
export function textEncoder(
  { file_format, compression, compression_level }: TextOptions,
  columns: readonly ExportedColumn[],
): Omit<FileEncoder, 'encode' | 'grouping'> {
  const header = textFormats[file_format].header(columns);
  const format = file_format.toLowerCase();
  const { extension, contentType } = names[file_format];
  if (compression === null)
    return {
      identity: `${format}/1`,
      extension,
      contentType,
      resumable: true,
      blockBytes,
      assemble: (resumed) => assembleText(concatenableCompression(null), header, resumed),
    };
  const compressed = {
    identity: `${format}+${nameWithLevel(compression, compression_level)}/1${libraryVersion(compression)}`,
    extension: `${extension}.${compressedNames[compression].extension}`,
    contentType: compressedNames[compression].contentType,
    blockBytes,
  };
  if (compression === 'brotli')
    return { ...compressed, resumable: false, assemble: () => assembleBrotli(header, compression_level) };
  return {
    ...compressed,
    resumable: true,
    assemble: (resumed) =>
      assembleText(concatenableCompression(compression, compression_level), header, resumed),
  };
}
