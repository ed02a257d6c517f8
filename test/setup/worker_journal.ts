import type { Pool } from '../../src/journal/database.ts';
import type { Journal } from '../../src/journal/journal.ts';
import { openJournal } from '../../src/projections/registry.ts';
import { createLogger } from '../../src/telemetry/logger.ts';
import { createSubscribers } from '../../src/temporal/capabilities.ts';

/**
 * Opens a journal with the subscribers of a worker, such as that of notifications.
 * @param startDeliveries what starts deliveries; without it they stay pending
 */
export const openWorkerJournal = (
  pool: Pool,
  startDeliveries: (batchExportId: string) => Promise<void> = () => Promise.resolve(),
): Journal =>
  openJournal(pool, {
    subscribers: createSubscribers(startDeliveries, createLogger('test', { EXPORTD_LOG_LEVEL: 'silent' })),
  });
