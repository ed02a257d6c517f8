import type { Attempt } from '../notifications/send_webhook.ts';
import { deleteWebhookTest, storeWebhookTest } from '../notifications/webhooks.ts';
import type { Pool } from '../journal/database.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { WebhookTestClient, WebhookTestOutcome } from '../temporal/clients/notification_client.ts';
import { ApiError } from './api_error.ts';

/** What testing a webhook needs. */
export interface WebhookTestService {
  readonly pool: Pool;
  readonly webhookTests: WebhookTestClient;
  readonly logger: Logger;
}

const retryLater = { headers: { 'retry-after': '5' } };

/**
 * Sends a test message through a worker, since only workers decrypt the webhook's secret. Stores nothing permanently.
 * @throws ApiError 503 when Temporal cannot be reached, or no worker sent the message in time.
 */
export async function testWebhook(
  { pool, webhookTests, logger }: WebhookTestService,
  teamId: number,
  webhookId: string,
): Promise<Attempt> {
  const deliveryId = await storeWebhookTest(pool, teamId, webhookId);
  try {
    const outcome = await webhookTests.test(deliveryId).catch((error: unknown): WebhookTestOutcome => {
      logger.warn({ err: error, webhook_id: webhookId }, 'Could not start a webhook test.');
      throw new ApiError(
        503,
        'temporal_unreachable',
        'Temporal cannot be reached. Nothing was sent. Retry in a few seconds.',
        retryLater,
      );
    });
    if (!outcome.tested) throw new ApiError(503, 'not_tested', `${outcome.reason} Retry later.`, retryLater);
    const { delivered, status, detail } = outcome;
    return { delivered, status, detail };
  } finally {
    await deleteWebhookTest(pool, deliveryId);
  }
}
