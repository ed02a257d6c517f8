import { fieldOf, formatUuid } from '../source/sort_key.ts';
import type { ExportedColumn } from '../source/columns.ts';

/** Consecutive rows of a block (see `RowBlock`). */
export interface Rows {
  readonly block: Buffer;
  readonly rows: number;
  readonly columns: readonly ExportedColumn[];
}

/** The id of the row whose tuple starts at `rowAt`: its uuid, or its distinct_id. */
export function rowIdOf({ block, columns }: Pick<Rows, 'block' | 'columns'>, rowAt: number): string {
  const names = ['uuid', 'distinct_id'];
  // A column that a query selects can have any name.
  const isKey = columns.some(({ hidden }) => hidden)
    ? ({ hidden }: ExportedColumn) => hidden === true
    : () => true;
  const position = names
    .map((name) => columns.findIndex((column) => column.name === name && isKey(column)))
    .find((index) => index >= 0);
  if (position === undefined) return '(unnamed)';
  const { start, end } = fieldOf(block, rowAt, position);
  if (end < start) return '(unnamed)';
  return columns[position]?.type === 'uuid' ? formatUuid(block, start) : block.toString('utf8', start, end);
}
