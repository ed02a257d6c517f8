import {
  hasAdvanced,
  readUnsettledRuns,
  recordBarrier,
  type UnsettledRun,
} from '../decisions/unsettled_runs.ts';
import { isDatabaseUnavailable } from '../journal/database_errors.ts';
import type { MaintenanceDependencies } from './maintenance_dependencies.ts';

/** The result of a check, which is stored in the workflow's history. */
export interface BarriersOutcome {
  /** Runs whose barrier was checked. */
  readonly checked: number;
  /** Those of them whose barrier has opened. */
  readonly opened: number;
  readonly has_more: false;
}

/**
 * Checks the barriers of all runs that were exported while transactions of the source were open, however long ago. One
 * list of the open transactions serves all of them.
 * @throws the first error of a run that could not be recorded, after all others
 */
export async function checkBarriers(
  { journal, source }: Pick<MaintenanceDependencies, 'journal' | 'source'>,
  signal: AbortSignal,
): Promise<BarriersOutcome> {
  let checked = 0;
  let opened = 0;
  let last: UnsettledRun | undefined;
  const errors: unknown[] = [];
  for (;;) {
    const runs = await readUnsettledRuns(journal.pool, last);
    last = runs.at(-1);
    if (!last) break;
    const checks = await source.checkBarriers(runs.map(({ barrier }) => barrier));
    for (const [index, run] of runs.entries()) {
      const state = checks[index]?.state;
      if (!state || !hasAdvanced(run, state)) continue;
      signal.throwIfAborted();
      try {
        await recordBarrier(journal, run, state);
        if (state.phase === 'open') opened += 1;
      } catch (error) {
        if (isDatabaseUnavailable(error)) throw error;
        errors.push(error);
      }
    }
    checked += runs.length;
  }
  if (errors.length > 0) throw errors[0];
  return { checked, opened, has_more: false };
}
