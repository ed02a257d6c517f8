import type { RowRange } from '../source/source.ts';
import type { CheckContext, ManifestCheck } from './manifest_check.ts';
import { checkedRows, type FileReadContext } from './checked_files.ts';
import { unkeyedDifferences } from './compare_unkeyed.ts';
import { earlierRows } from './earlier_files.ts';
import { extensionsOf } from './files/read_rows.ts';
import { createEventClassifier } from './difference_classifier.ts';
import type { LoadedManifest } from './manifests.ts';
import type { RejectedRows } from './rejected_rows.ts';
import { OutOfOrder, maxSortableRows } from './row_order.ts';
import type { RowShape } from './row.ts';
import { observeRows, readAll } from './observe_rows.ts';

/** A manifest whose files contain the columns of an export's query, without the key of the rows. */
export interface UnkeyedManifest {
  readonly found: LoadedManifest;
  readonly range: RowRange;
  readonly reading: FileReadContext;
  readonly shape: RowShape;
  readonly rejected: RejectedRows;
}

/**
 * Compares the rows of such a manifest by their values only. Persons are only read and counted, because they change
 * and cannot be identified without keys.
 */
export async function checkUnkeyed(
  { source }: Pick<CheckContext, 'source'>,
  { found, range, reading, shape, rejected }: UnkeyedManifest,
): Promise<ManifestCheck> {
  const { collector, totals } = reading;
  const files = checkedRows(reading, found.manifest.files, shape);
  await readAll(earlierRows(reading, found.manifest, null));
  const result = (source_rows: number | null): ManifestCheck => ({
    found,
    collector,
    ...totals,
    source_rows,
    hasKeys: false,
    disordered: false,
    misplacedRows: [],
  });
  if (range.model === 'persons') {
    collector.note(
      'Its rows were not compared with the source, because its files do not contain both _inserted_at and distinct_id.',
    );
    await readAll(files);
    return result(null);
  }
  const rows = { source: 0 };
  const classifier = createEventClassifier(collector, rejected);
  try {
    const sourceRows = observeRows(source.rows(range, shape), () => (rows.source += 1));
    const jsonNullIsNull = found.manifest.files.some(({ key }) => extensionsOf(key).format === 'jsonl');
    for await (const difference of unkeyedDifferences(files, sourceRows, {
      columns: shape.columns,
      jsonNullIsNull,
    }))
      await classifier.add(difference);
    await classifier.finish();
  } catch (error) {
    if (!(error instanceof OutOfOrder)) throw error;
    collector.note(
      `Its rows were not compared, because more than ${maxSortableRows} of them are at another position than in the source.`,
    );
    return result(null);
  }
  return result(rows.source);
}
