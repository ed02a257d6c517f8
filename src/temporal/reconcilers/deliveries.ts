import { deliveryIds, notificationWorkflow } from '../../contract/notification_input.ts';
import { notifyConditionChanges } from '../../notifications/condition_changes.ts';
import { droppedDeliveries, dueDeliveries } from '../../notifications/deliveries.ts';
import type { NotificationClient } from '../clients/notification_client.ts';
import { checkExecutions, isStuck, type Reconciler } from './check_executions.ts';

/** The reconcilers of notifications, by their names in logs and metrics. */
export function createDeliveryReconcilers(
  notifications: NotificationClient,
): Readonly<Record<string, Reconciler>> {
  /** Starts due deliveries and restarts stuck ones. */
  const reconcileDeliveries: Reconciler = async (dependencies, pass) => {
    const { journal, settings } = dependencies;
    await checkExecutions(dependencies, pass, {
      workflowType: notificationWorkflow,
      expected: (await dueDeliveries(journal.pool)).map((id) => ({
        id,
        workflow_id: deliveryIds(settings).workflowId(id),
      })),
      repair: async ({ id }, execution) => {
        if (execution?.status !== 'RUNNING') await notifications.start(id);
        else if (isStuck(dependencies, execution)) await notifications.restart(id);
        else return false;
        return true;
      },
    });
  };
  /** Cancels deliveries whose webhook or export was deleted. */
  const cancelDroppedDeliveries: Reconciler = async ({ journal, executionLists, settings }, pass) => {
    const running = await executionLists.running(notificationWorkflow);
    const ids = running.flatMap(({ workflow_id }) => deliveryIds(settings).deliveryIdOf(workflow_id) ?? []);
    const dropped = await droppedDeliveries(journal.pool, ids);
    await pass.forEachItem(
      dropped,
      (id) => id,
      async (id) => {
        await notifications.cancel(id);
        return true;
      },
    );
  };
  /** Notifies webhooks of outages, late exports, held intervals and holes, and of their end, and starts the deliveries at once. */
  const notifyConditions: Reconciler = async (dependencies, pass) => {
    const changes = await notifyConditionChanges(dependencies.journal.pool);
    pass.counts.repaired += changes;
    if (changes > 0) await reconcileDeliveries(dependencies, pass);
  };
  return {
    conditions: notifyConditions,
    deliveries: reconcileDeliveries,
    dropped_deliveries: cancelDroppedDeliveries,
  };
}
