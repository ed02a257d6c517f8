import {
  type CompletedFile,
  type FileTotals,
  inKeyOrder,
  type RecordedFile,
} from '../domain/exported_files.ts';
import { adoptedFiles, type AdoptedManifest } from '../domain/adopted_manifest.ts';
import type { SortKey } from '../domain/sort_key.ts';
import { type Fingerprint, rowsOfFingerprint, subtractFingerprint } from '../domain/fingerprint.ts';
import type { ReplacedRun } from '../domain/replaced_generation.ts';
import { type ExistingRun, filesOf } from '../domain/run_state.ts';
import type { Connection, Pool } from '../journal/database.ts';

/** A completed file and the index of its range. */
export interface RangeFile extends CompletedFile {
  readonly range: number;
}

/** Reads the completed files of a run's generation, in key order. The state of the run has only their totals. */
export const readFiles = (
  database: Pool | Connection,
  runId: string,
  run: Pick<ExistingRun, 'generation' | 'ranges'>,
): Promise<RangeFile[]> => readFilesOf(database, runId, run.generation, filesOf(run));

async function readFilesOf(
  database: Pool | Connection,
  runId: string,
  generation: number,
  totals: FileTotals,
): Promise<RangeFile[]> {
  const { rows } = await database.query<{ range: number; key: string; file: StoredFile }>({
    name: 'read-files',
    text: `select range, key, file from exportd.destination_objects
      where run_id = $1 and generation = $2 and file is not null order by range, position`,
    values: [runId, generation],
  });
  const known = rows.flatMap(({ file: { fingerprint } }) => fingerprint ?? []);
  const files = rows.map(({ range, key, file }) => ({
    ...file,
    key,
    range,
    fingerprint: file.fingerprint ?? remainingRows(file, totals, known),
  }));
  return files.some((file) => file.generation !== undefined) ? inKeyOrder(files) : files;
}

/** A completed file as its row has it, beside its key. */
export type StoredFile = Omit<RecordedFile, 'key'>;

/** What the files of a run have more than those whose fingerprints are known: the rows of the only other file. */
function remainingRows(file: StoredFile, totals: FileTotals, known: readonly Fingerprint[]): Fingerprint {
  const remaining = totals.fingerprint && known.reduce(subtractFingerprint, totals.fingerprint);
  if (remaining === null || totals.count !== known.length + 1 || rowsOfFingerprint(remaining) !== file.rows)
    throw new Error(`${known.length + 1} files do not add up to the ${totals.count} files of their run.`);
  return remaining;
}

/** Reads the files of a run that publishes, and its base, in key order. */
export async function readPublishedFiles(
  database: Pool | Connection,
  runId: string,
  run: ExistingRun,
): Promise<readonly CompletedFile[]> {
  const own = await readFiles(database, runId, run);
  if (!run.replacement?.base) return own;
  const { run_id, generation } = run.replacement.replaced;
  const base = await readFilesOf(database, run_id, generation, run.replacement.base.files);
  return inKeyOrder<CompletedFile>([...base.map((file) => ({ generation, ...file })), ...own]);
}

/** Reads the keys of the late rows that a run adds to a manifest; undefined for a run that exports all rows. */
export async function readLateKeys(
  database: Pool | Connection,
  { replacement }: ExistingRun,
): Promise<readonly SortKey[] | undefined> {
  if (!replacement?.base) return undefined;
  const { rows } = await database.query<{ late_keys: readonly SortKey[] }>(
    `select data -> 'late_keys' as late_keys from exportd.journal_events
     where stream_type = 'run' and stream_id = $1 and event_type = 'RunReplacementChecked' and data ? 'late_keys'
     order by stream_version desc limit 1`,
    [replacement.base.listed_by],
  );
  return rows[0]?.late_keys ?? [];
}

/** Reads the files of the manifest that a run replaces, in key order. */
export async function readReplacedFiles(
  database: Pool | Connection,
  { run_id, run, adopted_by }: ReplacedRun,
): Promise<readonly CompletedFile[]> {
  if (adopted_by === null) return readFiles(database, run_id, run);
  // Some of them may belong to a run of the journal that ended after it had published.
  const { rows } = await database.query<{ data: AdoptedManifest }>(
    `select data from exportd.journal_events
     where stream_type = 'run' and stream_id = $1 and event_type = 'RunManifestAdopted'
     order by stream_version desc limit 1`,
    [adopted_by],
  );
  return rows[0] ? adoptedFiles(rows[0].data) : [];
}
