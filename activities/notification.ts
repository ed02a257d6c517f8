import { withApplicationFailures } from '../src/failures/application_failures.ts';
import type { DeliverNotification, DeliveryOutcome } from '../src/notifications/deliver.ts';
import type { Logger } from '../src/telemetry/logger.ts';

/** Dependencies of the notification's activities. */
export interface NotificationActivityDependencies {
  readonly deliver: DeliverNotification;
  readonly logger: Logger;
}

export type NotificationActivities = ReturnType<typeof createNotificationActivities>;

/** The activities of `batchExportNotification`. */
export const createNotificationActivities = ({ deliver, logger }: NotificationActivityDependencies) =>
  withApplicationFailures(
    {
      /** Sends a stored delivery to its webhook once. A receiver that rejects it is an outcome and not an error. */
      deliverNotification: async ({
        delivery_id,
      }: {
        readonly delivery_id: string;
      }): Promise<DeliveryOutcome> => deliver(delivery_id),
    },
    logger,
  );
