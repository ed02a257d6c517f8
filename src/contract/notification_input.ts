import { type DeploymentSettings, isId, workflowIdPrefix } from './workflow_ids.ts';

/** The name under which the workflow of deliveries is registered. */
export const notificationWorkflow = 'batchExportNotification';

/** The workflow ids of deliveries in a deployment. */
export function deliveryIds(settings: DeploymentSettings) {
  const prefix = `${workflowIdPrefix(settings)}batch-export-notification-`;
  return {
    workflowId: (deliveryId: string): string => `${prefix}${deliveryId}`,
    /** The delivery id in the workflow id of a delivery; undefined for any other workflow. */
    deliveryIdOf: (workflowId: string): string | undefined => {
      const id = workflowId.slice(prefix.length);
      return workflowId.startsWith(prefix) && isId(id) ? id : undefined;
    },
  };
}

/** Input of a delivery. The notification and the webhook are in the control database. */
export interface NotificationInput {
  readonly delivery_id: string;
  readonly task_queue: string;
  /** Limit of one attempt. */
  readonly timeout_ms: number;
}
