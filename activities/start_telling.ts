import type { Logger } from '../src/telemetry/logger.ts';
import type { NotificationClient } from '../src/temporal/notification_client.ts';

/** What starting to tell people needs. */
export interface TellingDependencies {
  readonly notifications: NotificationClient;
  readonly logger: Logger;
}

/** Starts telling people what is new about an export. Nobody waits for that: what fails here the reconciler starts. */
export async function startTelling(
  { notifications, logger }: TellingDependencies,
  batchExportId: string,
): Promise<void> {
  await notifications.startNew(batchExportId).catch((error: unknown) => {
    logger.warn({ err: error, batch_export_id: batchExportId }, 'Notifications could not be started yet.');
  });
}
