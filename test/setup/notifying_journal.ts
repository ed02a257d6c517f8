import type { Pool } from '../../src/journal/database.ts';
import type { Journal } from '../../src/journal/journal.ts';
import { createNotificationSubscriber } from '../../src/notifications/subscriber.ts';
import { openJournal } from '../../src/projections/registry.ts';
import { createLogger } from '../../src/telemetry/logger.ts';

/**
 * Opens a journal that stores notifications, as a worker does.
 * @param startDeliveries what starts deliveries; without it they stay pending
 */
export const openNotifyingJournal = (
  pool: Pool,
  startDeliveries: (batchExportId: string) => Promise<void> = () => Promise.resolve(),
): Journal =>
  openJournal(pool, {
    subscribers: [
      createNotificationSubscriber(startDeliveries, createLogger('test', { EXPORTD_LOG_LEVEL: 'silent' })),
    ],
  });
