import { areInSameBucket, createMayShrink } from '../destination/config_versions.ts';
import type { EarlierGenerations } from '../domain/earlier_generations.ts';
import { earlierGenerationsOf, isCoveredByRows, type ReplacedRun } from '../domain/replaced_generation.ts';
import type { ExistingRun, RunSpec } from '../domain/run_state.ts';
import type { Connection, Pool } from '../journal/database.ts';
import { readFiles, readReplacedFiles } from './read_files.ts';

/** Decides which files of earlier generations stay when a run publishes. @throws ConfigVersionNotFound */
export async function readEarlierGenerations(
  connection: Connection,
  runId: string,
  run: ExistingRun,
  replaced: ReplacedRun,
): Promise<EarlierGenerations> {
  const isCovered = isCoveredByRows(run, replaced);
  const files = isCovered
    ? { own: [], replaced: [] }
    : {
        own: await readFiles(connection, runId, run),
        replaced: await readReplacedFiles(connection, replaced),
      };
  // Nothing can stay, so that the configs need not be read.
  if (isCovered && !leftFiles(replaced.run))
    return earlierGenerationsOf(run, replaced, { mayShrink: false, isSameBucket: true, files });
  return earlierGenerationsOf(run, replaced, {
    mayShrink: await createMayShrink(connection)(run.spec),
    isSameBucket: await areInSameBucket(connection, run.spec, replaced.run.spec),
    files,
  });
}

const leftFiles = ({ earlier_generations: { kept, earlier, elsewhere } }: ExistingRun): boolean =>
  kept.length > 0 || earlier.length > 0 || elsewhere.length > 0;

/** Whether a run is a Completed one of the interval. */
export async function hasPublished(
  pool: Pool,
  spec: Pick<RunSpec, 'batch_export_id' | 'data_interval_start' | 'data_interval_end'>,
  runId: string,
): Promise<boolean> {
  const { rowCount } = await pool.query(
    `select from exportd.batch_export_runs where id::text = $1 and batch_export_id = $2 and data_interval_start = $3
     and data_interval_end = $4 and status = 'Completed'`,
    [runId, spec.batch_export_id, spec.data_interval_start, spec.data_interval_end],
  );
  return rowCount === 1;
}

/** Whether another run of the interval than this one has claimed publishing, so that its manifest may be stored. */
export async function mayHavePublished(
  pool: Pool,
  spec: Pick<RunSpec, 'batch_export_id' | 'data_interval_start' | 'data_interval_end'>,
  runId: string,
): Promise<boolean> {
  const { rowCount } = await pool.query(
    `select from exportd.batch_export_runs run
     join exportd.stream_states folded on folded.stream_type = 'run' and folded.stream_id = run.id
     where run.batch_export_id = $1 and run.data_interval_start = $2 and run.data_interval_end = $3 and run.id <> $4
       and folded.state->>'publish_started_at' is not null limit 1`,
    [spec.batch_export_id, spec.data_interval_start, spec.data_interval_end, runId],
  );
  return rowCount === 1;
}
