import type { StoredSecret } from '../config/key_ring.ts';
import type { ConfigRule } from '../decisions/config_rule.ts';
import type { RunRecorder } from '../decisions/run_recorder.ts';
import { listConfigSecrets, type ReadSelection } from '../destination/config_versions.ts';
import { createDestinationTestHandler } from '../destination/destination_test_job.ts';
import { createRoleCheckHandler } from '../destination/role_check_job.ts';
import type { PublishTarget } from '../export/publish_target.ts';
import { type JobDependencies, type JobHandler, jobRows, withdrawJobsOfExport } from '../jobs/jobs.ts';
import type { Pool } from '../journal/database.ts';
import type { Journal, Subscriber } from '../journal/journal.ts';
import { logRows, type StoredRows } from '../journal/stored_rows.ts';
import { notificationRows } from '../notifications/stored_rows.ts';
import { createWebhookTestHandler } from '../notifications/webhook_test_job.ts';
import { listWebhookSecrets } from '../notifications/webhooks.ts';
import { deleteChecksOfExport, intervalCheckRows } from '../projections/interval_checks.ts';
import { createTableKeeper } from '../table_commits/kept_files.ts';
import { createTableTarget } from '../table_commits/publish_to_table.ts';
import {
  createTableCommitRecorder,
  deleteFaultOfExport,
  tableCommitRows,
} from '../table_commits/recorded_commits.ts';
import { createTableHandlers } from '../table_commits/table_jobs.ts';
import { tableRule } from '../table_commits/table_rule.ts';
import { createDifferenceDecisionHandler } from '../maintenance/difference_decision.ts';
import { createDifferenceHandler } from '../maintenance/find_difference.ts';
import { createVerificationHandler } from '../verify/verification_job.ts';
import type { TargetCheck } from '../verify/verify_batch_export.ts';
import type { Capability, CapabilityDependencies } from './capability.ts';
import { createNotifications } from './notifications.ts';
import { createQueries } from './queries.ts';
import { decisionRows } from '../decisions/purge_exports.ts';

/** Tells the operator of faults. */
export { createOperatorWebhook as createFaultSender } from '../notifications/operator_webhook.ts';

/** What modules store of exports beside the journal and its read models. A new module is a line here. */
export const storedRows: readonly StoredRows[] = [
  logRows,
  intervalCheckRows,
  notificationRows,
  jobRows,
  tableCommitRows,
  decisionRows,
];

/** Deletes rows of an export with it, in the transaction that deletes it. */
export const deletions: readonly Subscriber[] = [
  withdrawJobsOfExport,
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

/** What capabilities ask of a config before it is saved. */
export const configRules: readonly ConfigRule[] = [tableRule];

/** Who stores sealed secrets. Those that are not listed here are never encrypted again. */
export const secretLists: readonly ((pool: Pool) => Promise<readonly StoredSecret[]>)[] = [
  listConfigSecrets,
  listWebhookSecrets,
];

/** What gets the files of runs besides their manifests. */
export const createTargets = (
  journal: Journal,
  dependencies: { readonly recorder: RunRecorder; readonly readSelection: ReadSelection },
): readonly PublishTarget[] => [
  createTableTarget({ ...dependencies, commits: createTableCommitRecorder(journal) }),
];

/** What needs files whatever their manifests say. */
export const keepers = [createTableKeeper];

/** What a verification compares besides manifests and files. */
export const targetChecks: readonly TargetCheck[] = [
  async (...input) => {
    // Most workers never verify.
    const { checkTarget } = await import('../table_commits/check_table.ts');
    return checkTarget(...input);
  },
];

/** Does the jobs of every kind. */
export const createJobHandlers = (
  dependencies: JobDependencies & Parameters<typeof createDifferenceDecisionHandler>[0],
): readonly JobHandler[] => [
  createDestinationTestHandler(dependencies),
  createRoleCheckHandler(dependencies),
  createWebhookTestHandler(dependencies),
  createDifferenceHandler(dependencies),
  createDifferenceDecisionHandler(dependencies),
  createVerificationHandler({ ...dependencies, targets: targetChecks }),
  ...createTableHandlers(dependencies),
];
