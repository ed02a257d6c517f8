import type { Manifest } from '../destination/manifest.ts';
import { checkedRows, type FileReadContext, type ManifestFile } from './checked_files.ts';
import type { Difference } from './compare_rows.ts';
import { readAll } from './observe_rows.ts';
import { maxSortableRows } from './row_order.ts';
import { keyText, type VerifiedRow } from './row.ts';

/** The files of earlier generations that a manifest still names. */
export const earlierFilesOf = ({ earlier, kept }: Manifest): Manifest['kept'] => [...earlier, ...kept];

/**
 * Reads the files of earlier generations, and yields the rows that readers of the manifest need. They may have rows that
 * the source no longer has, and rows that the manifest's own files have too: neither is a problem.
 * @param id the column that identifies rows; null if it is not needed
 */
export async function* earlierRows(
  reading: FileReadContext,
  { earlier, kept }: Manifest,
  id: string | null,
): AsyncGenerator<VerifiedRow> {
  const separate = { ...reading, totals: { rows: 0, bytes: 0 } };
  const rowsOf = (files: readonly ManifestFile[], column: string | null) =>
    checkedRows(separate, files, { id: column, columns: [] });
  yield* rowsOf(earlier, id);
  await readAll(rowsOf(kept, null));
}

/**
 * Passes differences through, except missing rows that are in files of earlier generations. Memory holds the missing
 * rows; more than `maxSortableRows` are not searched for.
 */
export async function* exceptEarlier(
  differences: AsyncIterable<Difference>,
  earlier: AsyncIterable<VerifiedRow>,
): AsyncGenerator<Difference> {
  const missing = new Map<string, VerifiedRow[]>();
  let count = 0;
  for await (const difference of differences) {
    if (difference.kind !== 'missing' || count >= maxSortableRows) yield difference;
    else {
      const key = keyText(difference.row);
      missing.set(key, [...(missing.get(key) ?? []), difference.row]);
      count += 1;
    }
  }
  for await (const row of earlier) missing.delete(keyText(row));
  for (const rows of missing.values()) for (const row of rows) yield { kind: 'missing', row };
}
