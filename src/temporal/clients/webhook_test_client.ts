import { ApplicationFailure } from '@temporalio/common';
import { WorkflowFailedError, type Client } from '@temporalio/client';
import { workflowTypes } from '../../contract/workflow_types.ts';
import type { Attempt } from '../../notifications/send_webhook.ts';
import {
  deliveryOptions,
  deliveryOverheadMs,
  deliveryPriorities,
  type DeliverySettings,
} from './delivery_options.ts';
import { resultWithin } from './executions.ts';

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
