import type { ColumnType, ExportedColumn } from '../source/columns.ts';
import type { GrowingBuffer } from './growing_buffer.ts';

/**
 * Appends the value at `[start, end)` of the block. Returns false when the format cannot represent it; the appended
 * bytes are then undefined.
 */
export type AppendValue = (target: GrowingBuffer, block: Buffer, start: number, end: number) => boolean;

/** A text format. Values are copied as bytes and never decoded to strings. */
export interface TextFormat {
  /** The text before the first row of a file. */
  header(columns: readonly ExportedColumn[]): Buffer;
  /** The text before the value of each column. The first one also starts the row. */
  prefixes(columns: readonly ExportedColumn[]): readonly Buffer[];
  readonly nullText: Buffer;
  readonly rowEnd: Buffer;
  readonly append: Readonly<Record<ColumnType, AppendValue>>;
}
