import { createOperatorWebhook } from '../../notifications/operator_webhook.ts';
import { createNotificationClient } from '../../temporal/clients/notification_client.ts';
import type { Resource } from '../resource.ts';
import type { ServerParts, StartedResource } from '../server_parts.ts';
import { registerDeliveryMetrics } from './metrics.ts';
import type { ResendService } from './requested_deliveries.ts';
import { webhookDeliveryRoutes, webhookRoutes, webhookTest } from './routes.ts';

/** Webhooks and their deliveries. @param notifications starts the deliveries that are sent again */
export const webhookResource = (notifications: ResendService['notifications']): Resource => ({
  routes: [webhookRoutes, webhookDeliveryRoutes(notifications)],
  jobs: [webhookTest],
  actions: {
    'POST /webhooks': 'webhook.create',
    'PATCH /webhooks/:id': 'webhook.update',
    'DELETE /webhooks/:id': 'webhook.delete',
    'POST /webhooks/:id/test': 'webhook.test',
    'POST /webhooks/:id/deliveries/:delivery_id/resend': 'webhook.resend',
  },
});

/** The same in a server. */
export function startWebhooks({ settings, pool, metrics, client, track }: ServerParts): StartedResource {
  registerDeliveryMetrics(metrics, pool);
  const notifications = createNotificationClient(client, pool, settings);
  return {
    faultSender: createOperatorWebhook(settings),
    resource: webhookResource({
      start: (deliveryId) => track(() => notifications.start(deliveryId)),
      restart: (deliveryId) => track(() => notifications.restart(deliveryId)),
    }),
  };
}
