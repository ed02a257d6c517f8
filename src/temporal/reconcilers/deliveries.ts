import { workflowIds } from '../../contract/workflow_ids.ts';
import { workflowTypes } from '../../contract/workflow_types.ts';
import { droppedDeliveries, dueDeliveries } from '../../notifications/deliveries.ts';
import { checkExecutions, isStuck } from './check_executions.ts';
import type { Pass } from './pass.ts';
import type { ReconcilerDependencies } from './reconciler.ts';

/** Starts due deliveries and restarts stuck ones. */
export async function reconcileDeliveries(dependencies: ReconcilerDependencies, pass: Pass): Promise<void> {
  const { journal, notifications, settings } = dependencies;
  await checkExecutions(dependencies, pass, {
    workflowType: workflowTypes.notification,
    expected: (await dueDeliveries(journal.pool)).map((id) => ({
      id,
      workflow_id: workflowIds(settings).delivery(id),
    })),
    repair: async ({ id }, execution) => {
      if (execution?.status !== 'RUNNING') await notifications.start(id);
      else if (isStuck(execution)) await notifications.restart(id);
      else return false;
      return true;
    },
  });
}

/** Cancels deliveries whose webhook or export was deleted. */
export async function cancelDroppedDeliveries(
  { journal, executionLists, notifications, settings }: ReconcilerDependencies,
  pass: Pass,
): Promise<void> {
  const running = await executionLists.running(workflowTypes.notification);
  const ids = running.flatMap(({ workflow_id }) => workflowIds(settings).deliveryIdOf(workflow_id) ?? []);
  const dropped = await droppedDeliveries(journal.pool, ids);
  await pass.forEachItem(
    dropped,
    (id) => id,
    async (id) => {
      await notifications.cancel(id);
      return true;
    },
  );
}
