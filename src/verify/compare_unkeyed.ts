import { canonicalValues, type CompareOptions, type Difference } from './compare_rows.ts';
import { OutOfOrder, sortableRows } from './row_order.ts';
import type { VerifiedRow } from './row.ts';

/**
 * Compares rows of files that do not tell which they are with those of the source. Both come in one order, so that rows
 * of equal values cancel out soon; what is left at the end is in one of them alone.
 * @throws OutOfOrder when too many would have to be kept
 */
export async function* unkeyedDifferences(
  fileRows: AsyncGenerator<VerifiedRow>,
  sourceRows: AsyncGenerator<VerifiedRow>,
  options: CompareOptions,
): AsyncGenerator<Difference> {
  const left = new Map<string, { kind: 'missing' | 'unexpected'; rows: VerifiedRow[] }>();
  const take = (kind: 'missing' | 'unexpected', row: VerifiedRow): void => {
    const values = JSON.stringify(canonicalValues(row.values, options));
    const open = left.get(values);
    if (!open) left.set(values, { kind, rows: [row] });
    else if (open.kind === kind) open.rows.push(row);
    else {
      open.rows.shift();
      if (open.rows.length === 0) left.delete(values);
    }
    if (left.size > sortableRows) throw new OutOfOrder('The rows are too different to be compared.');
  };
  try {
    for (let number = 1; ; number += 1) {
      const [file, source] = [await fileRows.next(), await sourceRows.next()];
      if (!file.done) take('unexpected', { ...file.value, id: `row ${number} of its files` });
      // Without values nothing tells which of the source's rows is missing.
      if (!source.done)
        take('missing', options.columns.length > 0 ? source.value : { ...source.value, id: '(any)' });
      if (file.done && source.done) break;
    }
  } finally {
    await Promise.all([fileRows.return(undefined), sourceRows.return(undefined)]);
  }
  for (const { kind, rows } of left.values()) for (const row of rows) yield { kind, row };
}
