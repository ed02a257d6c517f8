import type { KeyRing } from '../../config/key_ring.ts';
import type { Settings } from '../../config/settings.ts';
import { createDestinationTestHandler } from '../../destination/destination_test_job.ts';
import type { JobHandler } from '../../jobs/jobs.ts';
import type { Pool } from '../../journal/database.ts';
import type { Journal } from '../../journal/journal.ts';
import { createWebhookTestHandler } from '../../notifications/webhook_test_job.ts';
import { createTableHandlers } from '../../table_commits/table_jobs.ts';
import type { Logger } from '../../telemetry/logger.ts';
import { createVerificationHandler } from '../../verify/verification_job.ts';

/** Does the jobs of every kind. */
export const createJobHandlers = (dependencies: {
  readonly pool: Pool;
  readonly journal: Journal;
  readonly keyRing: KeyRing;
  readonly settings: Settings;
  readonly logger: Logger;
}): readonly JobHandler[] => [
  createDestinationTestHandler(dependencies),
  createWebhookTestHandler(dependencies),
  createVerificationHandler(dependencies),
  ...createTableHandlers(dependencies),
];
