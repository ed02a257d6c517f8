import { crc32 } from 'node:zlib';
import { bounds, boundText } from '../config/bounds.ts';
import { FileUnreadable, type RowShape, type ComparedRow } from './row.ts';
import { readCsv } from './csv.ts';
import { decompress } from './decompress.ts';
import { readJsonLines } from './json_lines.ts';
import { readParquet } from './parquet.ts';

type RowReader = (chunks: AsyncIterable<Buffer>, shape: RowShape) => AsyncGenerator<ComparedRow>;

/** Row readers by extension. */
const readers: Readonly<Record<string, RowReader>> = {
  jsonl: readJsonLines,
  csv: readCsv,
  parquet: readParquet,
};

/** The extensions of a key: the format, and the compression of the whole file or ''. */
export function extensionsOf(key: string): { readonly format: string; readonly codec: string } {
  // File names of ranges contain a dot before the extension: `…-0.3.jsonl.gz`.
  const segments = (key.split('/').at(-1) ?? '').split('.');
  const at = segments.findLastIndex((segment) => Object.hasOwn(readers, segment));
  return at === -1
    ? { format: '', codec: '' }
    : { format: segments[at] ?? '', codec: segments[at + 1] ?? '' };
}

/** A file as its manifest describes it. */
export interface DescribedFile {
  readonly key: string;
  readonly rows: number;
  readonly bytes: number;
}

/**
 * Reads the rows of a file of any format. Memory holds one row, or one block in formats with blocks. Reading ends where the
 * file is larger than its manifest says, or has many more rows: nothing else says how far a file unpacks.
 * @throws FileUnreadable, and errors of `chunks`
 */
export async function* readRows(
  { key, rows, bytes }: DescribedFile,
  chunks: AsyncIterable<Buffer>,
  shape: RowShape,
): AsyncGenerator<ComparedRow> {
  const { format, codec } = extensionsOf(key);
  const read = readers[format];
  if (!read) throw new FileUnreadable('its name has no known extension');
  let count = 0;
  for await (const row of read(decompress(atMost(bytes, chunks), codec), shape)) {
    count += 1;
    if (count > rows + bounds.excessRows.max)
      throw new FileUnreadable(
        `it has over ${boundText(bounds.excessRows)} rows more than its manifest says`,
      );
    yield row;
  }
}

async function* atMost(bytes: number, chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let read = 0;
  for await (const chunk of chunks) {
    read += chunk.length;
    if (read > bytes) throw new FileUnreadable('it is larger than its manifest says');
    yield chunk;
  }
}

/** Size and checksum of the bytes so far. */
export interface Measure {
  bytes: number;
  /** CRC-32 of the bytes so far. */
  crc: number;
}

/** Passes chunks through and measures them. */
export async function* measureChunks(
  chunks: AsyncIterable<Buffer>,
  measure: Measure,
): AsyncGenerator<Buffer> {
  for await (const chunk of chunks) {
    measure.bytes += chunk.length;
    measure.crc = crc32(chunk, measure.crc);
    yield chunk;
  }
}
