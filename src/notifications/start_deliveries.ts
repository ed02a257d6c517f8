import type { Logger } from '../telemetry/logger.ts';

/** Dependencies of `startDeliveries`. */
export interface StartDeliveriesDependencies {
  readonly notifications: {
    /** Starts every delivery of an export that has not been attempted. */
    startNew(batchExportId: string): Promise<void>;
  };
  readonly logger: Logger;
}

/** Starts the new deliveries of an export. Failures are only logged: the reconciler starts what is missing. */
export async function startDeliveries(
  { notifications, logger }: StartDeliveriesDependencies,
  batchExportId: string,
): Promise<void> {
  await notifications.startNew(batchExportId).catch((error: unknown) => {
    logger.warn(
      { err: error, batch_export_id: batchExportId },
      'Notifications could not be started; the reconciler will start them.',
    );
  });
}
