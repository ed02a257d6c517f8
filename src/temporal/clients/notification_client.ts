import { type Client, WorkflowFailedError, type WorkflowOptions } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { searchAttributes } from '../../../workflows/activity_options.ts';
import { forEachConcurrently } from '../../concurrency/keyed_semaphore.ts';
import type { Settings } from '../../config/settings.ts';
import { workflowIds, workflowTypes, type NotificationInput } from '../../contract/workflow_inputs.ts';
import type { Pool } from '../../journal/database.ts';
import { newDeliveries } from '../../notifications/deliveries.ts';
import type { NotificationType } from '../../notifications/notification.ts';
import type { Attempt } from '../../notifications/send_webhook.ts';
import { type ExecutionSettings, taskQueues } from '../connections.ts';
import { deliverySummary, resultWithin } from './executions.ts';
import { ignoreNotFound } from './export_workflows.ts';

/** The settings of every delivery. */
type DeliverySettings = ExecutionSettings & Pick<Settings, 'EXPORTD_WEBHOOK_TIMEOUT'>;

/** To read the delivery and to record its outcome, in addition to the request. */
const deliveryOverheadMs = 10_000;

/**
 * Priorities in the maintenance worker, whose own tasks have Temporal's default of 3: a person waits for a test, and
 * notifications come last. Projects take turns, so that receivers which hang delay no other project.
 */
const deliveryPriorities = { test: 1, notification: 4 } as const;

/** The start options of every delivery. */
function deliveryOptions(deliveryId: string, settings: DeliverySettings) {
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
         notification.data->>'batch_export_name' as name, webhook.origin
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
      staticSummary: deliverySummary(row.type, row.name, row.origin),
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

/** The outcome of a webhook test: the attempt, or the reason why there was none. */
export type WebhookTestOutcome =
  | ({ readonly tested: true } & Attempt)
  | { readonly tested: false; readonly reason: string };

/** Delivers stored webhook tests on a worker. */
export interface WebhookTestClient {
  /** Waits for the outcome. Rejects when Temporal is not reachable. */
  test(deliveryId: string): Promise<WebhookTestOutcome>;
}

/** How long a busy worker may take to start a test. */
const startDelayMs = 2_000;

/** Starts a workflow for each webhook test. */
export function createWebhookTestClient(client: Client, settings: DeliverySettings): WebhookTestClient {
  const executionMs = settings.EXPORTD_WEBHOOK_TIMEOUT + deliveryOverheadMs + startDelayMs;
  return {
    test: async (deliveryId) => {
      const handle = await client.workflow.start(workflowTypes.notification, {
        ...deliveryOptions(deliveryId, settings),
        workflowExecutionTimeout: executionMs,
        priority: { priorityKey: deliveryPriorities.test },
        staticSummary: 'Test of a webhook',
      });
      try {
        const attempt = await resultWithin(client, handle, executionMs);
        return { tested: true, ...(attempt as Attempt) };
      } catch (error) {
        if (!(error instanceof WorkflowFailedError)) throw error;
        return { tested: false, reason: reasonOf(error) };
      }
    },
  };
}

/** The message of an activity's failure is for users. Without one, no worker ran the activity in time. */
function reasonOf({ cause }: WorkflowFailedError): string {
  const failure = cause?.cause ?? cause;
  return failure instanceof ApplicationFailure
    ? failure.message
    : 'No worker has sent the test in time. Check that the workers run.';
}
