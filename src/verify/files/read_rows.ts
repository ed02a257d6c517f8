import { crc32 } from 'node:zlib';
import { FileUnreadable, type RowShape, type VerifiedRow } from '../row.ts';
import { readCsv } from './csv.ts';
import { decompress } from './decompress.ts';
import { readJsonLines } from './json_lines.ts';
import { readParquet } from './parquet.ts';

type RowReader = (chunks: AsyncIterable<Buffer>, shape: RowShape) => AsyncGenerator<VerifiedRow>;

/** How the rows of a file are read, by the ending of its name. */
const readers: Readonly<Record<string, RowReader>> = {
  jsonl: readJsonLines,
  csv: readCsv,
  parquet: readParquet,
};

/** The endings of a key: the format, and the compression of the whole file or ''. */
export function endingsOf(key: string): { readonly format: string; readonly codec: string } {
  // Files of a range have a point in their numbers too: `…-0.3.jsonl.gz`.
  const pieces = (key.split('/').at(-1) ?? '').split('.');
  const at = pieces.findLastIndex((piece) => Object.hasOwn(readers, piece));
  return at === -1 ? { format: '', codec: '' } : { format: pieces[at] ?? '', codec: pieces[at + 1] ?? '' };
}

/**
 * The rows of a file, whatever its format; in memory is a row, or a block of rows where the format has blocks.
 * @throws FileUnreadable, and what `chunks` throws.
 */
export async function* readRows(
  key: string,
  chunks: AsyncIterable<Buffer>,
  shape: RowShape,
): AsyncGenerator<VerifiedRow> {
  const { format, codec } = endingsOf(key);
  const read = readers[format];
  if (!read) throw new FileUnreadable(`its name does not end as that of a known format`);
  yield* read(decompress(chunks, codec), shape);
}

/** Bytes that have passed. */
export interface Measure {
  bytes: number;
  /** CRC-32 so far. */
  crc: number;
}

/** Passes bytes on and measures them. */
export async function* measuring(chunks: AsyncIterable<Buffer>, measure: Measure): AsyncGenerator<Buffer> {
  for await (const chunk of chunks) {
    measure.bytes += chunk.length;
    measure.crc = crc32(chunk, measure.crc);
    yield chunk;
  }
}
