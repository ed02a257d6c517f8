import { decisionRows } from '../decisions/collapse_history.ts';
import { deleteJobsOfExport, jobRows } from '../jobs/jobs.ts';
import type { Subscriber } from '../journal/journal.ts';
import { logRows, type StoredRows } from '../journal/stored_rows.ts';
import { notificationRows } from '../notifications/stored_rows.ts';
import { createNotificationSubscriber } from '../notifications/subscriber.ts';
import { deleteChecksOfExport, intervalCheckRows } from '../projections/interval_checks.ts';
import { deleteFaultOfExport } from '../table_commits/recorded_commits.ts';
import type { Logger } from '../telemetry/logger.ts';

/** What modules store of exports beside the journal and its read models. A new module is a line here. */
export const storedRows: readonly StoredRows[] = [
  logRows,
  intervalCheckRows,
  notificationRows,
  jobRows,
  decisionRows,
];

/**
 * What follows the events of the journal in their transactions. A new capability is a line here.
 * @param startDeliveries starts every delivery of an export that has not been attempted
 */
export const createSubscribers = (
  startDeliveries: (batchExportId: string) => Promise<void>,
  logger: Logger,
): readonly Subscriber[] => [
  createNotificationSubscriber(startDeliveries, logger),
  deleteJobsOfExport,
  deleteChecksOfExport,
  deleteFaultOfExport,
];
