import type { Client, WorkflowOptions } from '@temporalio/client';
import { searchAttributes } from '../../../workflows/search_attributes.ts';
import { workflowIds } from '../../contract/workflow_ids.ts';
import { workflowTypes } from '../../contract/workflow_types.ts';
import type { Pool } from '../../journal/database.ts';
import { newDeliveries, webhookName } from '../../notifications/deliveries.ts';
import type { NotificationType } from '../../notifications/notification.ts';
import { forEachConcurrently } from '../concurrency.ts';
import { deliveryOptions, deliveryPriorities, type DeliverySettings } from './delivery_options.ts';
import { ignoreNotFound } from './schedule_client.ts';
import { deliverySummary } from './summaries.ts';

/** Starts the workflows that deliver notifications to webhooks. */
export interface NotificationClient {
  /** Starts every delivery of an export that has not been attempted. */
  startNew(batchExportId: string): Promise<void>;
  /** Starts a delivery, unless it runs. */
  start(deliveryId: string): Promise<void>;
  /** Terminates a stuck execution and starts a new one. */
  restart(deliveryId: string): Promise<void>;
  /** Cancels a delivery whose webhook or export was deleted. */
  cancel(deliveryId: string): Promise<void>;
}

const maxConcurrentStarts = 8;

interface DeliveryRow {
  readonly type: NotificationType;
  readonly team_id: number;
  readonly batch_export_id: string;
  readonly run_id: string | null;
  readonly name: string;
  readonly url: string;
}

/** Creates the client. It reads what the executions show from the control database. */
export function createNotificationClient(
  client: Client,
  pool: Pool,
  settings: DeliverySettings,
): NotificationClient {
  const startAs = async (
    deliveryId: string,
    workflowIdConflictPolicy: NonNullable<WorkflowOptions['workflowIdConflictPolicy']>,
  ): Promise<void> => {
    const { rows } = await pool.query<DeliveryRow>(
      `select notification.type, notification.team_id, notification.batch_export_id, notification.run_id,
         notification.data->>'batch_export_name' as name, webhook.url
       from exportd.webhook_deliveries delivery
       join exportd.notifications notification on notification.id = notification_id
       join exportd.webhooks webhook on webhook.id = webhook_id
       where delivery.id = $1 and delivery.status = 'pending' and notification.type <> 'test'`,
      [deliveryId],
    );
    const [row] = rows;
    if (!row) return;
    await client.workflow.start(workflowTypes.notification, {
      ...deliveryOptions(deliveryId, settings),
      workflowIdConflictPolicy,
      priority: { priorityKey: deliveryPriorities.notification, fairnessKey: String(row.team_id) },
      typedSearchAttributes: [
        { key: searchAttributes.project, value: String(row.team_id) },
        { key: searchAttributes.batchExport, value: row.batch_export_id },
        { key: searchAttributes.status, value: 'Waiting' },
        ...(row.run_id === null ? [] : [{ key: searchAttributes.run, value: row.run_id }]),
      ],
      staticSummary: deliverySummary(row.type, row.name, webhookName(row.url)),
    });
  };
  return {
    startNew: async (batchExportId) => {
      const deliveries = await newDeliveries(pool, batchExportId);
      await forEachConcurrently(deliveries, maxConcurrentStarts, (id) => startAs(id, 'USE_EXISTING'));
    },
    start: (deliveryId) => startAs(deliveryId, 'USE_EXISTING'),
    restart: (deliveryId) => startAs(deliveryId, 'TERMINATE_EXISTING'),
    cancel: async (deliveryId) => {
      const handle = client.workflow.getHandle(workflowIds(settings).delivery(deliveryId));
      await handle.cancel().catch(ignoreNotFound);
    },
  };
}
