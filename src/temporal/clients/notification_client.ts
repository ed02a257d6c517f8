import type { Client, WorkflowOptions } from '@temporalio/client';
import { searchAttributes } from '../../../workflows/activity_options.ts';
import { forEachConcurrently } from '../../concurrency/keyed_semaphore.ts';
import type { Settings } from '../../config/settings.ts';
import {
  deliveryIds,
  type NotificationInput,
  notificationWorkflow,
} from '../../contract/notification_input.ts';
import { codeOf } from '../../contract/markdown.ts';
import type { Pool } from '../../journal/database.ts';
import { newDeliveries } from '../../notifications/deliveries.ts';
import type { NotificationType } from '../../notifications/notification.ts';
import { type ExecutionSettings, taskQueues } from '../task_queues.ts';
import {
  type ConsoleSettings,
  details,
  exportLink,
  link,
  maxLocationLength,
  truncate,
  type UserMetadata,
} from './user_metadata.ts';
import { ignoreNotFound } from './executions.ts';

/** The settings of every delivery. */
type DeliverySettings = ExecutionSettings & Pick<Settings, 'EXPORTD_BASE_URL' | 'EXPORTD_WEBHOOK_TIMEOUT'>;

/** To read the delivery and to record its outcome, in addition to the request. */
const deliveryOverheadMs = 10_000;

/**
 * The priority of deliveries in the maintenance worker, whose own tasks have Temporal's default of 3: notifications come last.
 * Projects take turns, so that receivers which hang delay no other project.
 */
const priorityKey = 4;

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
  readonly origin: string;
}

/** Summarizes a delivery: `run.failed of "Shop" to https://example.com`. */
const deliverySummary = (type: string, name: string, receiver: string): string =>
  `${type} of "${truncate(name)}" to ${receiver.slice(0, maxLocationLength)}`;

/** Describes the delivery of a notification of an export. */
export const deliveryMetadata = (
  delivery: {
    readonly id: string;
    readonly type: string;
    readonly batch_export_id: string;
    readonly name: string;
    readonly origin: string;
  },
  settings: ConsoleSettings,
): UserMetadata => {
  const { id, type, batch_export_id, name, origin } = delivery;
  return {
    staticSummary: deliverySummary(type, name, origin),
    staticDetails: details(
      `The notification ${codeOf(type)} of ${exportLink({ id: batch_export_id, name }, settings)} is sent to a webhook, again and again until the webhook accepts it or its time is over.`,
      undefined,
      [
        ['Receiver', codeOf(origin)],
        ['Webhooks', link('all webhooks', '/webhooks', settings)],
        ['Delivery', codeOf(id)],
      ],
    ),
  };
};

/** Creates the client. It reads what the executions show from the control database. */
export function createNotificationClient(
  client: Client,
  pool: Pool,
  settings: DeliverySettings,
): NotificationClient {
  const queues = taskQueues(settings);
  const startAs = async (
    deliveryId: string,
    workflowIdConflictPolicy: NonNullable<WorkflowOptions['workflowIdConflictPolicy']>,
  ): Promise<void> => {
    const { rows } = await pool.query<DeliveryRow>(
      `select notification.type, notification.team_id, notification.batch_export_id, notification.run_id,
         notification.data->>'batch_export_name' as name, webhook.origin
       from exportd.webhook_deliveries delivery
       join exportd.notifications notification on notification.id = notification_id
       join exportd.webhooks webhook on webhook.id = webhook_id
       where delivery.id = $1 and delivery.status = 'pending'`,
      [deliveryId],
    );
    const [row] = rows;
    if (!row) return;
    const input: NotificationInput = {
      delivery_id: deliveryId,
      task_queue: queues.maintenance,
      timeout_ms: settings.EXPORTD_WEBHOOK_TIMEOUT + deliveryOverheadMs,
    };
    await client.workflow.start(notificationWorkflow, {
      workflowId: deliveryIds(settings).workflowId(deliveryId),
      taskQueue: queues.control,
      args: [input],
      workflowTaskTimeout: settings.EXPORTD_WORKFLOW_TASK_TIMEOUT,
      workflowIdConflictPolicy,
      priority: { priorityKey, fairnessKey: String(row.team_id) },
      typedSearchAttributes: [
        { key: searchAttributes.project, value: String(row.team_id) },
        { key: searchAttributes.batchExport, value: row.batch_export_id },
        { key: searchAttributes.status, value: 'Waiting' },
        ...(row.run_id === null ? [] : [{ key: searchAttributes.run, value: row.run_id }]),
      ],
      ...deliveryMetadata({ ...row, id: deliveryId }, settings),
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
      const handle = client.workflow.getHandle(deliveryIds(settings).workflowId(deliveryId));
      await handle.cancel().catch(ignoreNotFound);
    },
  };
}
