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
