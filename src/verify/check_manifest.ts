import type { Manifest } from '../destination/manifest.ts';
import { checkedRows, type FileReading } from './checked_files.ts';
import { differences } from './compare_rows.ts';
import type { CheckContext, ManifestCheck } from './manifest_check.ts';
import { checkUnkeyed } from './check_unkeyed.ts';
import { observeRows } from './observe_rows.ts';
import { endingsOf } from './files/read_rows.ts';
import { createEventClassifier, createPersonClassifier } from './difference_classifier.ts';
import { checkSums } from './manifest_sums.ts';
import type { FoundManifest } from './manifests.ts';
import { readRejectedRows } from './rejected_rows.ts';
import { createRepeatedIds, type RepeatedIds } from './repeated_ids.ts';
import { inOrder, OutOfOrder, sorted, sortableRows, within } from './row_order.ts';
import { intervalOf, rangeOfManifest } from './ranges.ts';
import type { RowShape, VerifiedRow } from './row.ts';
import { createFindingCollector, type FindingCollector } from './finding_collector.ts';

/** Rows of other intervals that are looked for where they belong; further ones are only counted. */
const straysMaximum = 10_000;

/** Checks a manifest: its sums, its files, and their rows against those of the source. */
export async function checkManifest(context: CheckContext, found: FoundManifest): Promise<ManifestCheck> {
  try {
    return await checkRows(context, found, false);
  } catch (error) {
    if (!(error instanceof OutOfOrder)) throw error;
  }
  return checkRows(context, found, true);
}

/** Which column of a manifest's rows tells them apart. */
const idColumnOf = ({ model }: Manifest): string => (model === 'events' ? 'uuid' : 'distinct_id');

async function checkRows(
  context: CheckContext,
  found: FoundManifest,
  disordered: boolean,
): Promise<ManifestCheck> {
  const { source, deep, signal } = context;
  const { manifest, location, name } = found;
  const collector = createFindingCollector(intervalOf(manifest), name);
  const range = await rangeOfManifest(context, manifest, collector, name);
  checkSums(manifest, name, collector);
  const totals = { rows: 0, bytes: 0 };
  const reading: FileReading = { reader: location.reader, collector, totals, signal };
  const rejected = await readRejectedRows(reading, manifest);
  const hasKeys = await source.hasKeys(range);
  const shape: RowShape = {
    id: hasKeys ? idColumnOf(manifest) : null,
    columns: deep ? await source.comparedColumns(range, manifest.columns) : [],
  };
  if (!hasKeys) return checkUnkeyed(context, { found, range, reading, shape, rejected });
  const misplacedRows: VerifiedRow[] = [];
  const onMisplacedRow = (row: VerifiedRow) => {
    if (misplacedRows.length < straysMaximum) misplacedRows.push(row);
    else collector.row('unexpected', row.id);
  };
  const ids = manifest.model === 'persons' ? createRepeatedIds() : undefined;
  const read = observeRows(checkedRows(reading, manifest.files, shape), (row) => ids?.add(row.id));
  const fileRows = within((disordered ? sorted : inOrder)(read), range.interval, onMisplacedRow);
  let source_rows: number | null = 0;
  const sourceRows = observeRows(source.rows(range, shape), () => (source_rows = (source_rows ?? 0) + 1));
  const classifier = ids
    ? createPersonClassifier(collector, rejected, (ids) => source.personStates(range.team_id, ids))
    : createEventClassifier(collector, rejected);
  if (disordered)
    collector.add('file_order', name, 'The rows of its files are not in the order of their keys.');
  try {
    for await (const difference of differences(fileRows, sourceRows, {
      columns: shape.columns,
      jsonNullIsNull: manifest.files.some(({ key }) => endingsOf(key).format === 'jsonl'),
    }))
      await classifier.add(difference);
    await classifier.finish();
  } catch (error) {
    if (!disordered || !(error instanceof OutOfOrder)) throw error;
    source_rows = null;
    collector.note(`Its rows were not compared: more than ${sortableRows} would have to be sorted first.`);
  }
  if (ids) await nameRepeated(ids, checkedRowsAgain(reading, manifest), collector);
  return { found, collector, ...totals, source_rows, hasKeys, disordered, misplacedRows };
}

/** The rows of a manifest's files once more, by their keys alone; what is wrong with the files is known already. */
export function checkedRowsAgain(
  reading: Omit<FileReading, 'collector' | 'totals'>,
  manifest: Manifest,
): AsyncGenerator<VerifiedRow> {
  const ignored = createFindingCollector(intervalOf(manifest), '');
  const shape = { id: idColumnOf(manifest), columns: [] };
  return checkedRows(
    { ...reading, collector: ignored, totals: { rows: 0, bytes: 0 } },
    manifest.files,
    shape,
  );
}

async function nameRepeated(
  ids: RepeatedIds,
  again: AsyncGenerator<VerifiedRow>,
  collector: FindingCollector,
): Promise<void> {
  const mayBeRepeated = ids.repeated();
  if (!mayBeRepeated) return;
  const seen = new Set<string>();
  for await (const { id } of again) {
    if (!mayBeRepeated(id)) continue;
    if (seen.has(id)) collector.row('duplicate', id);
    seen.add(id);
  }
}
