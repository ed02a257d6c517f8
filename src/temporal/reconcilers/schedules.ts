import { workflowIds } from '../../contract/workflow_ids.ts';
import { workflowTypes } from '../../contract/workflow_types.ts';
import { findOverdueExports } from '../../decisions/overdue_exports.ts';
import { checkExecutions, isStuck, replacementReason } from './check_executions.ts';
import { liveExports } from './expected_executions.ts';
import type { Pass } from './pass.ts';
import type { ReconcilerDependencies } from './reconciler.ts';

/** Starts missing schedules, wakes those that missed an interval, and restarts stuck ones. */
export async function reconcileSchedules(dependencies: ReconcilerDependencies, pass: Pass): Promise<void> {
  const { journal, schedules, policies, settings } = dependencies;
  const overdue = await findOverdueExports(journal.pool, policies, settings.EXPORTD_RECONCILE_INTERVAL);
  for (const { id, error } of overdue.undecided) pass.reportFailure(id, error);
  const exports = await liveExports(journal.pool);
  await checkExecutions(dependencies, pass, {
    workflowType: workflowTypes.schedule,
    expected: exports.map(({ id, is_new }) => ({
      id,
      is_new,
      workflow_id: workflowIds(settings).schedule(id),
      is_suspect: overdue.ids.has(id),
    })),
    repair: async ({ id, is_suspect }, execution) => {
      if (execution?.status !== 'RUNNING') await schedules.start(id, replacementReason(execution));
      else if (isStuck(execution)) await schedules.restart(id, replacementReason(execution));
      // A busy schedule decides about the interval when its step succeeds. A wake-up would only lengthen its history.
      else if (is_suspect && !execution.is_busy) await schedules.start(id);
      else return false;
      return true;
    },
  });
}
