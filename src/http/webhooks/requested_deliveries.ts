import type { Pool } from '../../journal/database.ts';
import { resendDelivery } from '../../notifications/deliveries.ts';
import type { Logger } from '../../telemetry/logger.ts';
import type { NotificationClient } from '../../temporal/clients/notification_client.ts';
import { ApiError, notFound } from '../api_error.ts';

/** What resending a delivery needs. */
export interface ResendService {
  readonly pool: Pool;
  readonly notifications: Pick<NotificationClient, 'start' | 'restart'>;
  readonly logger: Logger;
}

/**
 * Sends the notification of a delivery again. Without Temporal, the reconciler starts the delivery within a minute.
 * @returns the delivery that sends it, and whether it is a new one
 * @throws ApiError 404, or 409 when the webhook is disabled or has too many pending deliveries
 */
export async function resend(
  { pool, notifications, logger }: ResendService,
  webhookId: string,
  deliveryId: string,
): Promise<{ readonly delivery_id: string; readonly created: boolean }> {
  const resent = await resendDelivery(pool, webhookId, deliveryId);
  switch (resent.outcome) {
    case 'not_found':
      throw notFound();
    case 'disabled':
      throw new ApiError(409, 'conflict', 'The webhook is disabled. Enable it, then resend.');
    case 'full':
      throw new ApiError(409, 'conflict', 'The webhook has too many pending deliveries. Resend it later.');
    default:
      break;
  }
  const { outcome, delivery_id } = resent;
  // Its workflow sleeps until the time of its next attempt, so it is replaced.
  const start = outcome === 'advanced' ? notifications.restart : notifications.start;
  await start(delivery_id).catch((error: unknown) => {
    logger.warn({ err: error, delivery_id }, 'A resend could not be started; the reconciler will start it.');
  });
  return { delivery_id, created: outcome === 'created' };
}
