import type { Manifest } from '../destination/manifest.ts';
import { checkedRows, type FileReading } from './checked_files.ts';
import { differences } from './compare_rows.ts';
import type { CheckContext, ManifestCheck } from './manifest_check.ts';
import { checkUnkeyed } from './check_unkeyed.ts';
import { counted } from './counted_rows.ts';
import { endingsOf } from './files/read_rows.ts';
import { createEventJudge, createPersonJudge } from './judge.ts';
import { checkSums } from './manifest_sums.ts';
import type { FoundManifest } from './manifests.ts';
import { readRejectedRows } from './rejected_rows.ts';
import { createRepeatedIds, type RepeatedIds } from './repeated_ids.ts';
import { inOrder, OutOfOrder, sorted, sortableRows, within } from './row_order.ts';
import { intervalOf, rangeOfManifest } from './ranges.ts';
import type { RowShape, VerifiedRow } from './row.ts';
import { createTally, type Tally } from './tally.ts';

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
  const { manifest, place, name } = found;
  const tally = createTally(intervalOf(manifest), name);
  const range = await rangeOfManifest(context, manifest, tally, name);
  checkSums(manifest, name, tally);
  const totals = { rows: 0, bytes: 0 };
  const reading: FileReading = { reader: place.reader, tally, totals, signal };
  const rejected = await readRejectedRows(reading, manifest);
  const hasKeys = await source.hasKeys(range);
  const shape: RowShape = {
    id: hasKeys ? idColumnOf(manifest) : null,
    columns: deep ? await source.comparedColumns(range, manifest.columns) : [],
  };
  if (!hasKeys) return checkUnkeyed(context, { found, range, reading, shape, rejected });
  const strays: VerifiedRow[] = [];
  const onStray = (row: VerifiedRow) => {
    if (strays.length < straysMaximum) strays.push(row);
    else tally.row('unexpected', row.id);
  };
  const ids = manifest.model === 'persons' ? createRepeatedIds() : undefined;
  const read = counted(checkedRows(reading, manifest.files, shape), (row) => ids?.add(row.id));
  const fileRows = within((disordered ? sorted : inOrder)(read), range.interval, onStray);
  let source_rows: number | null = 0;
  const sourceRows = counted(source.rows(range, shape), () => (source_rows = (source_rows ?? 0) + 1));
  const judge = ids
    ? createPersonJudge(tally, rejected, (ids) => source.personStates(range.team_id, ids))
    : createEventJudge(tally, rejected);
  if (disordered) tally.add('file_order', name, 'The rows of its files are not in the order of their keys.');
  try {
    for await (const difference of differences(fileRows, sourceRows, {
      columns: shape.columns,
      jsonNullIsNull: manifest.files.some(({ key }) => endingsOf(key).format === 'jsonl'),
    }))
      await judge.see(difference);
    await judge.finish();
  } catch (error) {
    if (!disordered || !(error instanceof OutOfOrder)) throw error;
    source_rows = null;
    tally.note(`Its rows were not compared: more than ${sortableRows} would have to be sorted first.`);
  }
  if (ids) await nameRepeated(ids, checkedRowsAgain(reading, manifest), tally);
  return { found, tally, ...totals, source_rows, hasKeys, disordered, strays };
}

/** The rows of a manifest's files once more, by their keys alone; what is wrong with the files is known already. */
export function checkedRowsAgain(
  reading: Omit<FileReading, 'tally' | 'totals'>,
  manifest: Manifest,
): AsyncGenerator<VerifiedRow> {
  const ignored = createTally(intervalOf(manifest), '');
  const shape = { id: idColumnOf(manifest), columns: [] };
  return checkedRows({ ...reading, tally: ignored, totals: { rows: 0, bytes: 0 } }, manifest.files, shape);
}

async function nameRepeated(
  ids: RepeatedIds,
  again: AsyncGenerator<VerifiedRow>,
  tally: Tally,
): Promise<void> {
  const mayBeRepeated = ids.repeated();
  if (!mayBeRepeated) return;
  const seen = new Set<string>();
  for await (const { id } of again) {
    if (!mayBeRepeated(id)) continue;
    if (seen.has(id)) tally.row('doubled', id);
    seen.add(id);
  }
}
