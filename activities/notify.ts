import type { DeliverNotification, DeliveryOutcome } from '../src/notifications/deliver.ts';
import type { Logger } from '../src/telemetry/logger.ts';
import { withFailures } from './failures.ts';

/** Which delivery; what is told, and to whom, is read from the control database. */
interface DeliveryInput {
  readonly delivery_id: string;
}

export type NotifyActivities = ReturnType<typeof createNotifyActivities>;

/** Tells webhooks what happened. A receiver that does not take a message is an outcome, no failure. */
export const createNotifyActivities = ({
  deliver,
  logger,
}: {
  readonly deliver: DeliverNotification;
  readonly logger: Logger;
}) =>
  withFailures(
    {
      deliverNotification: async ({ delivery_id }: DeliveryInput): Promise<DeliveryOutcome> =>
        deliver(delivery_id),
    },
    logger,
  );
