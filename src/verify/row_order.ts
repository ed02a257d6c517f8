import type { DataInterval } from '../domain/intervals.ts';
import { compareKeys, type VerifiedRow } from './row.ts';

/** A row that comes before the one in front of it. */
export class OutOfOrder extends Error {
  override readonly name = 'OutOfOrder';
}

/** Rows that can be sorted in memory: about 200 bytes each, 1 KB when their values are compared. */
export const sortableRows = 1_000_000;

/** Passes rows on as long as they are in order. @throws OutOfOrder */
export async function* inOrder(rows: AsyncIterable<VerifiedRow>): AsyncGenerator<VerifiedRow> {
  let previous: VerifiedRow | undefined;
  for await (const row of rows) {
    if (previous && compareKeys(previous, row) > 0) throw new OutOfOrder('The rows are not in order.');
    previous = row;
    yield row;
  }
}

/** Brings rows into order, in memory. @throws OutOfOrder when there are more than `sortableRows` */
export async function* sorted(rows: AsyncIterable<VerifiedRow>): AsyncGenerator<VerifiedRow> {
  const gathered: VerifiedRow[] = [];
  for await (const row of rows) {
    if (gathered.length >= sortableRows) throw new OutOfOrder('The rows are too many to be sorted.');
    gathered.push(row);
  }
  yield* gathered.sort(compareKeys);
}

/** Passes the rows of an interval on and hands all others to `onMisplacedRow`. */
export async function* within(
  rows: AsyncIterable<VerifiedRow>,
  interval: DataInterval,
  onMisplacedRow: (row: VerifiedRow) => void,
): AsyncGenerator<VerifiedRow> {
  const [start, end] = [microsecondText(interval.start), microsecondText(interval.end)];
  for await (const row of rows) {
    if (row.inserted_at >= start && row.inserted_at < end) yield row;
    else onMisplacedRow(row);
  }
}

/** A time as rows have it. */
export const microsecondText = (time: string): string => new Date(time).toISOString().replace('Z', '000Z');
