import { canonicalValues, type CompareOptions, type Difference } from './compare_rows.ts';
import { OutOfOrder, maxSortableRows } from './row_order.ts';
import type { VerifiedRow } from './row.ts';

/**
 * Compares rows of files without keys with those of the source, by their values. Both are in the same order, so rows
 * with equal values soon cancel out. What remains at the end exists on one side only.
 * @throws OutOfOrder when too many rows would have to be kept
 */
export async function* unkeyedDifferences(
  fileRows: AsyncGenerator<VerifiedRow>,
  sourceRows: AsyncGenerator<VerifiedRow>,
  options: CompareOptions,
): AsyncGenerator<Difference> {
  const unmatched = new Map<string, { kind: 'missing' | 'unexpected'; rows: VerifiedRow[] }>();
  const add = (kind: 'missing' | 'unexpected', row: VerifiedRow): void => {
    const values = JSON.stringify(canonicalValues(row.values, options));
    const matching = unmatched.get(values);
    if (!matching) unmatched.set(values, { kind, rows: [row] });
    else if (matching.kind === kind) matching.rows.push(row);
    else {
      matching.rows.shift();
      if (matching.rows.length === 0) unmatched.delete(values);
    }
    if (unmatched.size > maxSortableRows) throw new OutOfOrder('Too many rows differ to be compared.');
  };
  try {
    for (let number = 1; ; number += 1) {
      const [file, source] = [await fileRows.next(), await sourceRows.next()];
      if (!file.done) add('unexpected', { ...file.value, id: `row ${number} of its files` });
      // Without values it is unknown which row of the source is missing.
      if (!source.done)
        add('missing', options.columns.length > 0 ? source.value : { ...source.value, id: '(any)' });
      if (file.done && source.done) break;
    }
  } finally {
    await Promise.all([fileRows.return(undefined), sourceRows.return(undefined)]);
  }
  for (const { kind, rows } of unmatched.values()) for (const row of rows) yield { kind, row };
}
