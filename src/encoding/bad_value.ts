import { fieldOf, uuidText } from '../source/sort_key.ts';
import type { ExportedColumn } from '../source/source.ts';

/** A value that the file's format cannot hold. */
export interface BadValue {
  /** Where the row's tuple begins in the block. */
  readonly rowAt: number;
  readonly column: string;
  /** What is wrong with the value, as the end of a sentence. */
  readonly reason: string;
}

/** What people know a row by: its uuid, or its distinct_id where it has none. */
export function rowName(block: Buffer, rowAt: number, columns: readonly ExportedColumn[]): string {
  const position = ['uuid', 'distinct_id']
    .map((name) => columns.findIndex((column) => column.name === name))
    .find((index) => index >= 0);
  if (position === undefined) return '(unnamed)';
  const { start, end } = fieldOf(block, rowAt, position);
  if (end < start) return '(unnamed)';
  return columns[position]?.type === 'uuid' ? uuidText(block, start) : block.toString('utf8', start, end);
}
