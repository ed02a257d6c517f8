import type { Pool } from '../../src/journal/database.ts';
import type { Journal } from '../../src/journal/journal.ts';
import { createNotificationSubscriber } from '../../src/notifications/subscriber.ts';
import { openJournal } from '../../src/projections/registry.ts';
import { createLogger } from '../../src/telemetry/logger.ts';
import { deletions } from '../../src/temporal/capabilities.ts';

/** Opens a journal with the subscribers of a worker. Nothing starts deliveries, which stay pending. */
export const openWorkerJournal = (pool: Pool): Journal =>
  openJournal(pool, {
    subscribers: [
      createNotificationSubscriber(
        () => Promise.resolve(),
        createLogger('test', { EXPORTD_LOG_LEVEL: 'silent' }),
      ),
      ...deletions,
    ],
  });
