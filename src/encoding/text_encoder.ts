import type { ExportedColumn } from '../source/source.ts';
import { assembleBrotli } from './brotli_assembler.ts';
import { csv } from './csv.ts';
import type { EncodingOptions, FileEncoder, TextCompression } from './encoder.ts';
import { concatenableCompression } from './concatenable_compression.ts';
import { jsonLines } from './json_lines.ts';
import type { TextFormat } from './text_format.ts';
import { assembleText } from './text_assembler.ts';

export type TextOptions = Exclude<EncodingOptions, { file_format: 'Parquet' }>;

/** Bytes of rows in a block of text: so small that two threads never wait long for work. */
const blockBytes = 2 * 1024 * 1024;

/** How rows are written in each format of text. */
export const textFormats: Readonly<Record<TextOptions['file_format'], TextFormat>> = {
  JSONLines: jsonLines,
  CSV: csv,
};

/** What the files are called. */
const names: Readonly<Record<TextOptions['file_format'], { extension: string; contentType: string }>> = {
  JSONLines: { extension: 'jsonl', contentType: 'application/jsonl' },
  CSV: { extension: 'csv', contentType: 'text/csv; charset=utf-8; header=present' },
};

const compressedNames: Readonly<Record<TextCompression, { extension: string; contentType: string }>> = {
  gzip: { extension: 'gz', contentType: 'application/gzip' },
  zstd: { extension: 'zst', contentType: 'application/zstd' },
  brotli: { extension: 'br', contentType: 'application/x-brotli' },
};

/** What is to be known of files of text, but for how a block is encoded. */
export function textEncoder(
  { file_format, compression }: TextOptions,
  columns: readonly ExportedColumn[],
): Omit<FileEncoder, 'encode'> {
  const head = textFormats[file_format].head(columns);
  const format = file_format.toLowerCase();
  const { extension, contentType } = names[file_format];
  if (compression === null)
    return {
      identity: `${format}/1`,
      extension,
      contentType,
      resumable: true,
      blockBytes,
      assemble: (resumed) => assembleText(concatenableCompression(null), head, resumed),
    };
  const compressed = {
    identity: `${format}+${compression}/1`,
    extension: `${extension}.${compressedNames[compression].extension}`,
    contentType: compressedNames[compression].contentType,
    blockBytes,
  };
  if (compression === 'brotli')
    return { ...compressed, resumable: false, assemble: () => assembleBrotli(head) };
  return {
    ...compressed,
    resumable: true,
    assemble: (resumed) => assembleText(concatenableCompression(compression), head, resumed),
  };
}
