import { createMayShrink } from '../destination/may_shrink.ts';
import { areInSameBucket } from '../destination/same_bucket.ts';
import { nothingEarlier, type EarlierGenerations } from '../domain/earlier_generations.ts';
import { earlierGenerationsOf } from '../domain/replaced_generation.ts';
import { runDecider, RunEnded, type ExistingRun, type RunSpec } from '../domain/run.ts';
import type { Pool } from '../journal/database.ts';
import { readState, type Journal } from '../journal/journal.ts';
import { findReplacedRun } from './replaced_run.ts';

/**
 * Reads what decides which files of earlier generations stay when a run publishes. The result is applied to the run's
 * state under its lock.
 * @throws RunEnded, ConfigVersionNotFound
 */
export async function readEarlierGenerations(
  journal: Journal,
  runId: string,
): Promise<(run: ExistingRun) => EarlierGenerations> {
  const state = await readState(journal, runDecider, runId);
  if (state.status === 'Absent') throw new RunEnded('Absent');
  const { spec } = state;
  const replaced = await findReplacedRun(journal, spec);
  if (!replaced || replaced.run_id === runId) return () => nothingEarlier;
  const mayShrink = await createMayShrink(journal.pool)(spec);
  const isSameBucket = await areInSameBucket(journal.pool, spec, replaced.run.spec);
  return (run) => earlierGenerationsOf(run, replaced, { mayShrink, isSameBucket });
}

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
