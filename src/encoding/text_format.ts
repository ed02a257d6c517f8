import type { ColumnType, ExportedColumn } from '../source/source.ts';
import type { GrowingBuffer } from './growing_buffer.ts';

/**
 * Appends the value that lies at `[start, end)` in the block; false, with nothing of use appended, when the format has
 * no text for it.
 */
export type AppendValue = (target: GrowingBuffer, block: Buffer, start: number, end: number) => boolean;

/** How rows are written as text. Values go from bytes to bytes; no strings are made of them. */
export interface TextFormat {
  /** What stands in front of the first row of a file. */
  head(columns: readonly ExportedColumn[]): Buffer;
  /** For each column what stands in front of its value; the first also begins the row. */
  prefixes(columns: readonly ExportedColumn[]): readonly Buffer[];
  readonly nullText: Buffer;
  readonly rowEnd: Buffer;
  readonly append: Readonly<Record<ColumnType, AppendValue>>;
}
