import { adoptedFiles, type AdoptedManifest } from '../domain/earlier_generations.ts';
import type { ReplacedRun } from '../domain/replaced_generation.ts';
import type { CompletedFile } from '../domain/exported_files.ts';
import type { ExistingRun } from '../domain/run_state.ts';
import type { Connection, Pool } from '../journal/database.ts';

/** A completed file and the index of its range. */
export interface RangeFile extends CompletedFile {
  readonly range: number;
}

/** Reads the completed files of a run's generation, in key order. The state of the run has only their totals. */
export async function readFiles(
  database: Pool | Connection,
  runId: string,
  { generation }: Pick<ExistingRun, 'generation'>,
): Promise<RangeFile[]> {
  const { rows } = await database.query<{ range: number; file: CompletedFile }>({
    name: 'read-files',
    text: `select range, file from exportd.destination_objects
      where run_id = $1 and generation = $2 and file is not null order by range, position`,
    values: [runId, generation],
  });
  return rows.map(({ range, file }) => ({ ...file, range }));
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
