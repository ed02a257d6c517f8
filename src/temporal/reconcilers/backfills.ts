import { workflowIds } from '../../contract/workflow_ids.ts';
import { workflowTypes } from '../../contract/workflow_types.ts';
import { checkExecutions, isStuck, replacementReason } from './check_executions.ts';
import { activeBackfills } from './expected_executions.ts';
import type { Pass } from './pass.ts';
import type { ReconcilerDependencies } from './reconciler.ts';

/** Starts missing backfills and restarts stuck ones. */
export async function reconcileBackfills(dependencies: ReconcilerDependencies, pass: Pass): Promise<void> {
  const { journal, backfills, settings } = dependencies;
  await checkExecutions(dependencies, pass, {
    workflowType: workflowTypes.backfill,
    expected: (await activeBackfills(journal.pool, settings.EXPORTD_RECONCILE_INTERVAL)).map((backfill) => ({
      ...backfill,
      workflow_id: workflowIds(settings).backfill(backfill.id),
    })),
    repair: async ({ id }, execution) => {
      if (execution?.status !== 'RUNNING') await backfills.start(id, replacementReason(execution));
      else if (isStuck(execution)) await backfills.restart(id, replacementReason(execution));
      else return false;
      return true;
    },
  });
}
