import type { Attempt } from '../notifications/send_webhook.ts';
import { deleteWebhookTest, storeWebhookTest } from '../notifications/webhooks.ts';
import type { Pool } from '../journal/database.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { WebhookTestClient, WebhookTestOutcome } from '../temporal/clients/notification_client.ts';
import { ApiError } from './api_error.ts';

/** What having a webhook tested needs. */
export interface WebhookTestService {
  readonly pool: Pool;
  readonly webhookTests: WebhookTestClient;
  readonly logger: Logger;
}

const retryLater = { headers: { 'retry-after': '5' } };

/**
 * Has a test sent by a worker, which alone opens the webhook's secret. Nothing of it stays stored.
 * @throws ApiError 503 when Temporal cannot be reached, or no worker sent it in time.
 */
export async function testWebhook(
  { pool, webhookTests, logger }: WebhookTestService,
  teamId: number,
  webhookId: string,
): Promise<Attempt> {
  const deliveryId = await storeWebhookTest(pool, teamId, webhookId);
  try {
    const outcome = await webhookTests.test(deliveryId).catch((error: unknown): WebhookTestOutcome => {
      logger.warn({ err: error, webhook_id: webhookId }, 'a test of a webhook could not be started');
      throw new ApiError(
        503,
        'temporal_unreachable',
        'The scheduler cannot be reached. Nothing was sent; try again later.',
        retryLater,
      );
    });
    if (!outcome.tested)
      throw new ApiError(503, 'not_tested', `${outcome.reason} Try again later.`, retryLater);
    const { delivered, status, detail } = outcome;
    return { delivered, status, detail };
  } finally {
    await deleteWebhookTest(pool, deliveryId);
  }
}
