import type { VerifiedRow } from './row.ts';

/** Passes rows on and tells of each. */
export async function* observeRows(
  rows: AsyncIterable<VerifiedRow>,
  onRow: (row: VerifiedRow) => void,
): AsyncGenerator<VerifiedRow> {
  for await (const row of rows) {
    onRow(row);
    yield row;
  }
}
