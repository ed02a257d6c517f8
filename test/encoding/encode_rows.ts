import { appendRows, type TextFormat } from '../../src/encoding/text_formats.ts';
import type { UnrepresentableValue } from '../../src/encoding/rows.ts';
import { createGrowingBuffer } from '../../src/encoding/memory.ts';
import type { ExportedColumn } from '../../src/source/row_selection.ts';
import { copyBlock, type FieldBytes } from './copy_block.ts';

/** Encodes rows as text; returns it with the unrepresentable values. */
export function encodeRows(
  format: TextFormat,
  columns: readonly ExportedColumn[],
  ...rows: FieldBytes[][]
): { text: string; bad: UnrepresentableValue[] } {
  // So small that it grows at every step.
  const target = createGrowingBuffer(1);
  const bad: UnrepresentableValue[] = [];
  const block = copyBlock(rows);
  appendRows(target, { block, rows: rows.length, columns }, format, (value) => bad.push(value));
  return { text: target.bytes.toString('utf8', 0, target.length), bad };
}
