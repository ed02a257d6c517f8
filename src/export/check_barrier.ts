import type { BarrierCheck, BarrierState } from '../source/source.ts';
import { countExistingRun, type CountDependencies, type CountedRows } from './count_rows.ts';

/** The result of one check; `counted` when the barrier is open. */
export type RunBarrierCheck = BarrierCheck & { readonly counted?: CountedRows };

/** How many blocking transactions are named in a workflow's history; the rest are only counted. */
const maxNamedBlockers = 5;

/**
 * Checks once whether an open transaction of the source may still add rows to the run's interval. When none may, it counts
 * the rows at once: most runs pass their first check, and this saves them a workflow step.
 */
export async function checkRunBarrier(
  dependencies: CountDependencies,
  { run_id, state }: { readonly run_id: string; readonly state: BarrierState },
  signal: AbortSignal,
): Promise<RunBarrierCheck> {
  const { recorder, source } = dependencies;
  const run = await recorder.readActive(run_id);
  const check = await source.checkBarrier(run.spec.data_interval_end, state);
  const blocked_by = nameBlockers(check.blocked_by);
  // Logged once, when the wait starts, so that the export's log explains why the run makes no progress.
  if (state.phase === 'settling' && blocked_by.length > 0)
    await recorder.log(
      run,
      run_id,
      'INFO',
      `Waiting for open transactions of the source to end: ${blocked_by.join('; ')}.`,
    );
  if (check.state.phase !== 'open') return { ...check, blocked_by };
  const counted = await countExistingRun(dependencies, { run_id, settled: true, blocked_by }, run, signal);
  return { ...check, blocked_by, counted };
}

const nameBlockers = (blockers: readonly string[]): readonly string[] =>
  blockers.length <= maxNamedBlockers
    ? blockers
    : [...blockers.slice(0, maxNamedBlockers), `${blockers.length - maxNamedBlockers} more`];
