import type { VerifiedRow } from './row.ts';

/** Passes rows through and calls `onRow` for each. */
export async function* observeRows(
  rows: AsyncIterable<VerifiedRow>,
  onRow: (row: VerifiedRow) => void,
): AsyncGenerator<VerifiedRow> {
  for await (const row of rows) {
    onRow(row);
    yield row;
  }
}

/** Reads rows to the end. */
export async function readAll(rows: AsyncGenerator<VerifiedRow>): Promise<void> {
  while (!(await rows.next()).done);
}
