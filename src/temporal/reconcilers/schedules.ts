import { workflowIds } from '../../contract/workflow_ids.ts';
import { findOverdueExports } from '../../decisions/overdue_exports.ts';
import { describeExecution } from '../clients/executions.ts';
import { liveExports } from './expected_executions.ts';
import { forEachItem, isStuck, type ReconcilerDependencies } from './reconciler.ts';

/** Starts missing schedules, wakes those that missed an interval, and restarts stuck ones. */
export async function reconcileSchedules(dependencies: ReconcilerDependencies): Promise<void> {
  const { journal, client, schedules, policies, settings } = dependencies;
  const overdue = await findOverdueExports(journal.pool, policies, settings.EXPORTD_RECONCILE_INTERVAL);
  await forEachItem(dependencies, await liveExports(journal.pool), async (id) => {
    const execution = await describeExecution(client, workflowIds(settings).schedule(id));
    if (execution && isStuck(execution)) await schedules.restart(id);
    else if (execution?.status !== 'RUNNING' || overdue.has(id)) await schedules.start(id);
  });
}
