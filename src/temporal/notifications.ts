import { createNotificationActivities } from '../../activities/notification.ts';
import { maxConcurrentDeliveries } from '../../workflows/delivery_options.ts';
import { createDeliverer } from '../notifications/deliver.ts';
import { createNotificationSubscriber } from '../notifications/subscriber.ts';
import { readCondition } from '../projections/export_conditions.ts';
import type { Capability, CapabilityDependencies } from './capability.ts';
import { createNotificationClient } from './clients/notification_client.ts';
import { createDeliveryReconcilers } from './reconcilers/deliveries.ts';

/** Notifies webhooks of what happens to exports. */
export function createNotifications({
  client,
  pool,
  keyRing,
  logger,
  settings,
}: CapabilityDependencies): Capability {
  const notifications = createNotificationClient(client, pool, settings);
  const deliver = createDeliverer(pool, keyRing, settings, (id) => readCondition(pool, id));
  return {
    subscribers: [createNotificationSubscriber((id) => notifications.startNew(id), logger)],
    reconcilers: createDeliveryReconcilers(notifications),
    activities: createNotificationActivities({ deliver, logger }),
    activitySlots: maxConcurrentDeliveries,
  };
}
