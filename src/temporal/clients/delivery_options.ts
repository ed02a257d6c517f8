import type { Settings } from '../../config/settings.ts';
import { workflowIds } from '../../contract/workflow_ids.ts';
import type { NotificationInput } from '../../contract/workflow_inputs.ts';
import { taskQueues, type ExecutionSettings } from '../task_queues.ts';

/** The settings of every delivery. */
export type DeliverySettings = ExecutionSettings & Pick<Settings, 'EXPORTD_WEBHOOK_TIMEOUT'>;

/** To read the delivery and to record its outcome, in addition to the request. */
export const deliveryOverheadMs = 10_000;

/**
 * Priorities in the maintenance worker, whose own tasks have Temporal's default of 3: a person waits for a test, and
 * notifications come last. Projects take turns, so that receivers which hang delay no other project.
 */
export const deliveryPriorities = { test: 1, notification: 4 } as const;

/** The start options of every delivery. */
export function deliveryOptions(deliveryId: string, settings: DeliverySettings) {
  const queues = taskQueues(settings);
  const input: NotificationInput = {
    delivery_id: deliveryId,
    task_queue: queues.maintenance,
    timeout_ms: settings.EXPORTD_WEBHOOK_TIMEOUT + deliveryOverheadMs,
  };
  return {
    workflowId: workflowIds(settings).delivery(deliveryId),
    taskQueue: queues.control,
    args: [input],
    workflowTaskTimeout: settings.EXPORTD_WORKFLOW_TASK_TIMEOUT,
  };
}
