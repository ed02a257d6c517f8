import { createNotificationClient } from '../../temporal/clients/notification_client.ts';
import type { Resource } from '../resource.ts';
import type { ServerParts, StartedResource } from '../server_parts.ts';
import type { ResendService } from './requested_deliveries.ts';
import { webhookDeliveryRoutes, webhookRoutes } from './routes.ts';

/** Webhooks and their deliveries. @param notifications starts the deliveries that are sent again */
export const webhookResource = (notifications: ResendService['notifications']): Resource => ({
  routes: [webhookRoutes, webhookDeliveryRoutes(notifications)],
});

/** The same in a server. */
export function startWebhooks({ settings, pool, client, track }: ServerParts): StartedResource {
  const notifications = createNotificationClient(client, pool, settings);
  return {
    resource: webhookResource({
      start: (deliveryId) => track(() => notifications.start(deliveryId)),
      restart: (deliveryId) => track(() => notifications.restart(deliveryId)),
    }),
  };
}
