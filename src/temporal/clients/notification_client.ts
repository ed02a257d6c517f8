import { ApplicationFailure } from '@temporalio/common';
import { WorkflowFailedError, type Client, type WorkflowOptions } from '@temporalio/client';
import type { Settings } from '../../config/settings.ts';
import { newDeliveries, webhookName } from '../../notifications/deliveries.ts';
import type { Pool } from '../../journal/database.ts';
import type { NotificationType } from '../../notifications/notification.ts';
import type { Attempt } from '../../notifications/send_webhook.ts';
import { deliveryWorkflowId } from '../../contract/workflow_ids.ts';
import type { NotificationInput } from '../../contract/workflow_inputs.ts';
import { workflowTypes } from '../../contract/workflow_types.ts';
import { searchAttributes } from '../../../workflows/search_attributes.ts';
import { forEachConcurrently } from '../concurrency.ts';
import { resultWithin } from './executions.ts';
import { ignoreNotFound } from './schedule_client.ts';
import { notificationSummary } from './summaries.ts';
import { taskQueues, type ExecutionSettings } from '../task_queues.ts';

/** Starts the workflows that tell webhooks what happened. */
export interface NotificationClient {
  /** Starts the delivery of everything about an export that nobody has tried to tell yet. */
  startNew(batchExportId: string): Promise<void>;
  /** Starts a delivery where it does not run. */
  start(deliveryId: string): Promise<void>;
  /** Puts a fresh execution in the place of one that is stuck. */
  restart(deliveryId: string): Promise<void>;
  /** Ends a delivery that nothing is left to do for. */
  cancel(deliveryId: string): Promise<void>;
}

/** What became of the test of a webhook, or a sentence that says why there was none. */
export type WebhookTestOutcome =
  ({ readonly tested: true } & Attempt) | { readonly tested: false; readonly reason: string };

/** Has stored tests of webhooks delivered by a worker. */
export interface WebhookTestClient {
  /** Waits for the outcome. Rejects when Temporal cannot be reached. */
  test(deliveryId: string): Promise<WebhookTestOutcome>;
}

type ClientSettings = ExecutionSettings & Pick<Settings, 'EXPORTD_WEBHOOK_TIMEOUT'>;

/** Beyond the time of a request: to read what is to be told and to record what became of it. */
const aroundMs = 10_000;
/** How long a worker that is busy may take to begin a test. */
const beginningMs = 2_000;
const startsAtOnce = 8;

/**
 * Of what waits for a place in the upkeep worker: a person waits for a test, the upkeep has Temporal's 3, and projects have
 * their turns, so that one whose receivers hang keeps neither the upkeep nor other projects' receivers waiting.
 */
const priorities = { test: 1, notification: 4 } as const;

function optionsOf(deliveryId: string, settings: ClientSettings) {
  const queues = taskQueues(settings);
  const input: NotificationInput = {
    delivery_id: deliveryId,
    task_queue: queues.maintenance,
    timeout_ms: settings.EXPORTD_WEBHOOK_TIMEOUT + aroundMs,
  };
  return {
    workflowId: deliveryWorkflowId(deliveryId),
    taskQueue: queues.control,
    args: [input],
    workflowTaskTimeout: settings.EXPORTD_WORKFLOW_TASK_TIMEOUT,
  };
}

interface DeliveryRow {
  readonly type: NotificationType;
  readonly team_id: number;
  readonly batch_export_id: string;
  readonly run_id: string | null;
  readonly name: string;
  readonly url: string;
}

/** Starts deliveries on a Temporal namespace. */
export function createNotificationClient(
  client: Client,
  pool: Pool,
  settings: ClientSettings,
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
      ...optionsOf(deliveryId, settings),
      workflowIdConflictPolicy,
      priority: { priorityKey: priorities.notification, fairnessKey: String(row.team_id) },
      typedSearchAttributes: [
        { key: searchAttributes.project, value: String(row.team_id) },
        { key: searchAttributes.batchExport, value: row.batch_export_id },
        { key: searchAttributes.status, value: 'Waiting' },
        ...(row.run_id === null ? [] : [{ key: searchAttributes.run, value: row.run_id }]),
      ],
      staticSummary: notificationSummary(row.type, row.name, webhookName(row.url)),
    });
  };
  return {
    startNew: async (batchExportId) => {
      const deliveries = await newDeliveries(pool, batchExportId);
      await forEachConcurrently(deliveries, startsAtOnce, (id) => startAs(id, 'USE_EXISTING'));
    },
    start: (deliveryId) => startAs(deliveryId, 'USE_EXISTING'),
    restart: (deliveryId) => startAs(deliveryId, 'TERMINATE_EXISTING'),
    cancel: async (deliveryId) => {
      const handle = client.workflow.getHandle(deliveryWorkflowId(deliveryId));
      await handle.cancel().catch(ignoreNotFound);
    },
  };
}

/** Starts a workflow for each test of a webhook. */
export function createWebhookTestClient(client: Client, settings: ClientSettings): WebhookTestClient {
  const executionMs = settings.EXPORTD_WEBHOOK_TIMEOUT + aroundMs + beginningMs;
  return {
    test: async (deliveryId) => {
      const handle = await client.workflow.start(workflowTypes.notification, {
        ...optionsOf(deliveryId, settings),
        workflowExecutionTimeout: executionMs,
        priority: { priorityKey: priorities.test },
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

/** Messages of failures of activities are written for users; every other ending means that no worker got so far. */
function reasonOf({ cause }: WorkflowFailedError): string {
  const failure = cause?.cause ?? cause;
  return failure instanceof ApplicationFailure
    ? failure.message
    : 'No worker has sent the test in time; are they running?';
}
