/** Rows of files in their order, as verification reads them. */
import type { DataInterval } from '../domain/intervals.ts';
import { compareKeys, type ComparedRow } from '../readers/row.ts';

/** Passes rows through and calls `onRow` for each. */
export async function* observeRows(
  rows: AsyncIterable<ComparedRow>,
  onRow: (row: ComparedRow) => void,
): AsyncGenerator<ComparedRow> {
  for await (const row of rows) {
    onRow(row);
    yield row;
  }
}

/** Reads rows to the end. */
export async function readAll(rows: AsyncGenerator<ComparedRow>): Promise<void> {
  while (!(await rows.next()).done);
}

/** Rows are not sorted. */
export class OutOfOrder extends Error {
  override readonly name = 'OutOfOrder';
}

/** Maximum number of rows that are sorted in memory: about 200 bytes per row, 1 KB with values. */
export const maxSortableRows = 1_000_000;

/** Passes rows through while they are sorted. @throws OutOfOrder */
export async function* inOrder(rows: AsyncIterable<ComparedRow>): AsyncGenerator<ComparedRow> {
  let previous: ComparedRow | undefined;
  for await (const row of rows) {
    if (previous && compareKeys(previous, row) > 0) throw new OutOfOrder('The rows are not sorted.');
    previous = row;
    yield row;
  }
}

/** Sorts rows in memory. @throws OutOfOrder when there are more than `maxSortableRows` */
export async function* sorted(rows: AsyncIterable<ComparedRow>): AsyncGenerator<ComparedRow> {
  const collected: ComparedRow[] = [];
  for await (const row of rows) {
    if (collected.length >= maxSortableRows) throw new OutOfOrder('There are too many rows to sort.');
    collected.push(row);
  }
  yield* collected.sort(compareKeys);
}

/** Passes the rows of an interval through, and all others to `onMisplacedRow`. */
export async function* within(
  rows: AsyncIterable<ComparedRow>,
  interval: DataInterval,
  onMisplacedRow: (row: ComparedRow) => void,
): AsyncGenerator<ComparedRow> {
  const [start, end] = [formatMicroseconds(interval.start), formatMicroseconds(interval.end)];
  for await (const row of rows) {
    if (row.inserted_at >= start && row.inserted_at < end) yield row;
    else onMisplacedRow(row);
  }
}

/** Formats a time as in rows. */
export const formatMicroseconds = (time: string): string => new Date(time).toISOString().replace('Z', '000Z');
