import type { Manifest } from '../destination/manifest.ts';
import { checkedRows, type FileReadContext } from './checked_files.ts';
import { keyedDifferences } from './compare_rows.ts';
import type { CheckContext, ManifestCheck } from './manifest_check.ts';
import { checkFingerprint } from './check_fingerprint.ts';
import { checkUnkeyed } from './check_unkeyed.ts';
import { earlierRows, exceptEarlier } from './earlier_files.ts';
import { createRowFingerprint } from './row_fingerprint.ts';
import { observeRows } from './observe_rows.ts';
import { extensionsOf } from './files/read_rows.ts';
import { createEventClassifier, createPersonClassifier } from './difference_classifier.ts';
import { checkSums } from './manifest_sums.ts';
import type { LoadedManifest } from './manifests.ts';
import { readRejectedRows } from './rejected_rows.ts';
import { createRepeatedIds, type RepeatedIds } from './repeated_ids.ts';
import { inOrder, OutOfOrder, sorted, maxSortableRows, within } from './row_order.ts';
import { intervalOf, rangeOfManifest } from './ranges.ts';
import type { RowShape, VerifiedRow } from './row.ts';
import { createFindingCollector, type FindingCollector } from './finding_collector.ts';

/** Maximum number of rows that are searched for in the manifest of their interval. Further ones are only counted. */
const maxMisplacedRows = 10_000;

/** Checks a manifest: its sums, its files, and their rows against the source. */
export async function checkManifest(context: CheckContext, found: LoadedManifest): Promise<ManifestCheck> {
  if (context.fast) return checkFingerprint(context, found);
  try {
    return await checkRows(context, found, false);
  } catch (error) {
    if (!(error instanceof OutOfOrder)) throw error;
  }
  return checkRows(context, found, true);
}

/** The column that identifies the rows of a manifest. */
const idColumnOf = ({ model }: Manifest): string => (model === 'events' ? 'uuid' : 'distinct_id');

async function checkRows(
  context: CheckContext,
  found: LoadedManifest,
  disordered: boolean,
): Promise<ManifestCheck> {
  const { source, deep, signal, expirations } = context;
  const { manifest, location, name } = found;
  const collector = createFindingCollector(intervalOf(manifest), name);
  const range = await rangeOfManifest(context, manifest, collector, name);
  checkSums(manifest, name, collector);
  const totals = { rows: 0, bytes: 0 };
  const readContext: FileReadContext = {
    reader: location.reader,
    collector,
    totals,
    signal,
    isExpired: (key) => expirations.isExpiredFile(range.interval, key),
    createFingerprint: (like) => createRowFingerprint(source.hashIds, range.interval, like),
  };
  const rejected = await readRejectedRows(readContext, manifest);
  const hasKeys = await source.hasKeys(range);
  const shape: RowShape = {
    id: hasKeys ? idColumnOf(manifest) : null,
    columns: deep ? await source.comparedColumns(range, manifest.columns) : [],
  };
  if (!hasKeys) return checkUnkeyed(context, { found, range, reading: readContext, shape, rejected });
  const misplacedRows: VerifiedRow[] = [];
  const onMisplacedRow = (row: VerifiedRow) => {
    if (misplacedRows.length < maxMisplacedRows) misplacedRows.push(row);
    else collector.row('unexpected', row.id);
  };
  const ids = manifest.model === 'persons' ? createRepeatedIds() : undefined;
  const read = observeRows(checkedRows(readContext, manifest.files, shape), (row) => ids?.add(row.id));
  const fileRows = within((disordered ? sorted : inOrder)(read), range.interval, onMisplacedRow);
  let source_rows: number | null = 0;
  const sourceRows = observeRows(source.rows(range, shape), () => (source_rows = (source_rows ?? 0) + 1));
  const classifier = ids
    ? createPersonClassifier(collector, rejected, (ids) => source.personStates(range.team_id, ids))
    : createEventClassifier(collector, rejected);
  if (disordered) collector.add('file_order', name, 'The rows of its files are not sorted by their keys.');
  try {
    const compared = keyedDifferences(fileRows, sourceRows, {
      columns: shape.columns,
      jsonNullIsNull: manifest.files.some(({ key }) => extensionsOf(key).format === 'jsonl'),
    });
    const earlier = earlierRows(readContext, manifest, shape.id);
    for await (const difference of exceptEarlier(compared, earlier)) await classifier.add(difference);
    await classifier.finish();
  } catch (error) {
    if (!disordered || !(error instanceof OutOfOrder)) throw error;
    source_rows = null;
    collector.note(
      `Its rows were not compared, because more than ${maxSortableRows} unsorted rows are not supported.`,
    );
  }
  if (ids) await reportRepeated(ids, rereadRows(readContext, manifest), collector);
  return { found, collector, ...totals, source_rows, hasKeys, disordered, misplacedRows };
}

/** Reads the rows of a manifest's files again, with keys only. Problems of the files have been reported already. */
export function rereadRows(
  readContext: Pick<FileReadContext, 'reader' | 'signal'>,
  manifest: Manifest,
): AsyncGenerator<VerifiedRow> {
  const ignored = createFindingCollector(intervalOf(manifest), '');
  const shape = { id: idColumnOf(manifest), columns: [] };
  return checkedRows(
    {
      ...readContext,
      collector: ignored,
      totals: { rows: 0, bytes: 0 },
      isExpired: () => Promise.resolve(false),
      createFingerprint: null,
    },
    manifest.files,
    shape,
  );
}

async function reportRepeated(
  ids: RepeatedIds,
  again: AsyncGenerator<VerifiedRow>,
  collector: FindingCollector,
): Promise<void> {
  const mayBeRepeated = ids.findRepeated();
  if (!mayBeRepeated) return;
  const seen = new Set<string>();
  for await (const { id } of again) {
    if (!mayBeRepeated(id)) continue;
    if (seen.has(id)) collector.row('duplicate', id);
    seen.add(id);
  }
}
