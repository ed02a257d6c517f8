import { workflowIds } from '../../contract/workflow_ids.ts';
import { workflowTypes } from '../../contract/workflow_types.ts';
import { droppedDeliveries, dueDeliveries } from '../../notifications/deliveries.ts';
import { describeExecution, runningExecutions } from '../clients/executions.ts';
import { forEachItem, isStuck, type ReconcilerDependencies } from './reconciler.ts';

/** Starts due deliveries, restarts stuck ones, and cancels those whose webhook or export was deleted. */
export async function reconcileDeliveries(dependencies: ReconcilerDependencies): Promise<void> {
  const { journal, client, notifications, settings } = dependencies;
  await forEachItem(dependencies, await dueDeliveries(journal.pool), async (id) => {
    const execution = await describeExecution(client, workflowIds(settings).delivery(id));
    if (execution?.status !== 'RUNNING') await notifications.start(id);
    else if (isStuck(execution)) await notifications.restart(id);
  });
  const running: string[] = [];
  for await (const { workflowId } of runningExecutions(client, settings, workflowTypes.notification)) {
    const id = workflowIds(settings).deliveryIdOf(workflowId);
    if (id !== undefined) running.push(id);
  }
  const dropped = await droppedDeliveries(journal.pool, running);
  await forEachItem(dependencies, dropped, (id) => notifications.cancel(id));
}
