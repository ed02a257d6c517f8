import type { DeliverNotification, DeliveryOutcome } from '../src/notifications/deliver.ts';
import type { Logger } from '../src/telemetry/logger.ts';
import { wrapActivities } from './run_step.ts';

export type NotificationActivities = ReturnType<typeof createNotificationActivities>;

/** The activities of `batchExportNotification`. */
export const createNotificationActivities = ({
  deliver,
  logger,
}: {
  readonly deliver: DeliverNotification;
  readonly logger: Logger;
}) =>
  wrapActivities(
    { logger },
    {
      /** Sends a stored delivery to its webhook once. A receiver that rejects it is an outcome and not an error. */
      deliverNotification: async (
        _,
        { delivery_id }: { readonly delivery_id: string },
      ): Promise<DeliveryOutcome> => deliver(delivery_id),
    },
  );
