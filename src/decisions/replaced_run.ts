import { adoptedRun, type ReplacedRun } from '../domain/replaced_generation.ts';
import { runDecider } from '../domain/run.ts';
import type { RunSpec } from '../domain/run_state.ts';
import { readState, type Journal } from '../journal/journal.ts';

export type { ReplacedRun } from '../domain/replaced_generation.ts';

/**
 * Reads the run whose manifest another run of its interval would replace: the newest Completed one, or the one whose
 * manifest a newer run found in the bucket and adopted. Null if there is none. An interval has at most one active run, so
 * the result changes only when that run adopts a manifest.
 */
export async function findReplacedRun(
  journal: Pick<Journal, 'pool' | 'projector'>,
  spec: Pick<RunSpec, 'batch_export_id' | 'data_interval_start' | 'data_interval_end'>,
): Promise<ReplacedRun | null> {
  const { rows } = await journal.pool.query<{ id: string }>(
    `select id from exportd.batch_export_runs where batch_export_id = $1 and data_interval_start = $2
     and data_interval_end = $3 and (status = 'Completed' or adopted_generation is not null)
     order by position desc limit 1`,
    [spec.batch_export_id, spec.data_interval_start, spec.data_interval_end],
  );
  const [found] = rows;
  if (!found) return null;
  const run = await readState(journal, runDecider, found.id);
  if (run.status === 'Absent') return null;
  if (run.status !== 'Completed' && run.adopted) return adoptedRun(run.adopted, run.spec, found.id);
  return { run_id: found.id, run, adopted_by: null };
}
