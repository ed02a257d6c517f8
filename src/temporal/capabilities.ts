import { decisionRows } from '../decisions/collapse_history.ts';
import { deleteJobsOfExport, jobRows } from '../jobs/jobs.ts';
import type { Subscriber } from '../journal/journal.ts';
import { logRows, type StoredRows } from '../journal/stored_rows.ts';
import { notificationRows } from '../notifications/stored_rows.ts';
import { deleteChecksOfExport, intervalCheckRows } from '../projections/interval_checks.ts';
import { deleteFaultOfExport } from '../table_commits/recorded_commits.ts';
import type { Capability, CapabilityDependencies } from './capability.ts';
import { createNotifications } from './notifications.ts';
import { createQueries } from './queries.ts';

/** What modules store of exports beside the journal and its read models. A new module is a line here. */
export const storedRows: readonly StoredRows[] = [
  logRows,
  intervalCheckRows,
  notificationRows,
  jobRows,
  decisionRows,
];

/** Deletes rows of an export with it, in the transaction that deletes it. */
export const deletions: readonly Subscriber[] = [
  deleteJobsOfExport,
  deleteChecksOfExport,
  deleteFaultOfExport,
];

/** All that optional capabilities add to the workers. A new one is a line here. */
export function createCapabilities(dependencies: CapabilityDependencies): Capability {
  const notifications = createNotifications(dependencies);
  const queries = createQueries(dependencies);
  return {
    ...notifications,
    reconcilers: { ...notifications.reconcilers, ...queries.reconcilers },
    subscribers: [...notifications.subscribers, ...deletions],
  };
}
