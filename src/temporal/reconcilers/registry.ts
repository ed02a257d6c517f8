import { workflowIds, workflowTypes } from '../../contract/workflow_ids.ts';
import { readStartableRun, type StartableRun } from '../../decisions/startable_runs.ts';
import { collapseHistory } from '../../decisions/collapse_history.ts';
import { cleanUpTimeOf, removeSecrets } from '../../decisions/remove_secrets.ts';
import { findOverdueExports } from '../../decisions/overdue_exports.ts';
import { endRun } from '../../decisions/run_outcomes.ts';
import { renewTimeLimits } from '../../failures/operator_faults.ts';
import { deterministicId } from '../../journal/journal.ts';
import { deleteExpired } from '../../journal/stored_rows.ts';
import { deleteEndedSessions, deleteExpiredAuditEvents } from '../../journal/audit.ts';
import { idempotencyKeyRetentionMs } from '../../journal/commands.ts';
import { dropExpiredReadModels } from '../../projections/read_models.ts';
import { inTransaction } from '../../journal/database.ts';
import { storedRows } from '../capabilities.ts';
import { describeExecution, type Execution, isExecutionOf } from '../clients/executions.ts';
import {
  activeBackfills,
  activeRuns,
  checkExecutions,
  endedRuns,
  isActiveRun,
  isStuck,
  liveExports,
  pendingCommands,
  type Reconciler,
  type ReconcilerDependencies,
  replacementReason,
} from './check_executions.ts';
import { probeDestinations } from './destinations.ts';
import type { Pass } from './pass.ts';

/** Schedules of a busy deployment are late themselves. To wake them would add to what they wait for. */
const busyTolerance = 5;

/** Starts missing schedules, wakes those that missed an interval, and restarts stuck ones. */
export async function reconcileSchedules(dependencies: ReconcilerDependencies, pass: Pass): Promise<void> {
  const { journal, schedules, policies, settings } = dependencies;
  const toleranceMs = settings.EXPORTD_RECONCILE_INTERVAL * (dependencies.isIdle() ? 1 : busyTolerance);
  const overdue = await findOverdueExports(journal.pool, policies, toleranceMs);
  for (const { id, error } of overdue.undecided) pass.reportFailure(id, error);
  const exports = await liveExports(journal.pool);
  await checkExecutions(dependencies, pass, {
    workflowType: workflowTypes.schedule,
    expected: exports.map(({ id, is_new }) => ({
      id,
      is_new,
      workflow_id: workflowIds(settings).schedule(id),
      is_suspect: overdue.ids.has(id),
    })),
    repair: async ({ id, is_suspect }, execution) => {
      if (execution?.status !== 'RUNNING') await schedules.start(id, replacementReason(execution));
      else if (isStuck(dependencies, execution)) await schedules.restart(id, replacementReason(execution));
      // A busy schedule decides about the interval when its step succeeds. A wake-up would only lengthen its history.
      else if (is_suspect && !execution.is_busy) await schedules.start(id);
      else return false;
      return true;
    },
  });
}

/** Records ends of runs that only Temporal knows of, starts missing executions, and restarts stuck ones. */
async function reconcileRuns(dependencies: ReconcilerDependencies, pass: Pass): Promise<void> {
  const { journal, settings } = dependencies;
  await checkExecutions(dependencies, pass, {
    workflowType: workflowTypes.run,
    expected: (await activeRuns(journal.pool, settings.EXPORTD_RECONCILE_INTERVAL)).map((run) => ({
      ...run,
      workflow_id: workflowIds(settings).run(run),
    })),
    // An execution of another run of the same interval has the same workflow id.
    isOf: ({ id }, execution) => isExecutionOf({ run_id: id }, execution),
    repair: ({ id }, latest) => repairRun(dependencies, id, latest),
  });
}

async function repairRun(
  dependencies: ReconcilerDependencies,
  runId: string,
  latest: Execution | undefined,
): Promise<boolean> {
  const { journal, runs, logger } = dependencies;
  const execution = latest && isExecutionOf({ run_id: runId }, latest) ? latest : undefined;
  if (execution?.status === 'RUNNING' && !isStuck(dependencies, execution)) return false;
  const run = await readStartableRun(journal.pool, runId);
  if (!run) return false;
  if (execution?.status === 'TERMINATED') {
    await end(dependencies, run, 'Terminated', 'Terminated in Temporal.');
  } else if (execution?.status === 'TIMED_OUT') {
    if (await renewTimeLimits(journal.pool, runId, execution.temporal_run_id))
      await runs.start(run, 'it waited for the operator for longer than its time limit.');
    else await end(dependencies, run, 'TimedOut', 'The run exceeded its timeout.');
  } else if (execution?.status === 'CANCELLED') {
    await end(dependencies, run, 'Cancelled', 'Cancelled in Temporal.');
  } else if (execution?.status === 'RUNNING') {
    logger.warn({ run_id: runId }, "Restarting a run's workflow, which is stuck.");
    await runs.restart(run, replacementReason(execution));
  } else if (await isActiveRun(journal.pool, runId)) {
    // Still active after the description, so its execution is missing: Temporal knows none, or the interval's latest
    // execution is that of another run.
    if (execution)
      logger.warn(
        { run_id: runId, status: execution.status },
        'Starting a run again, whose workflow ended without recording an outcome.',
      );
    await runs.start(run, replacementReason(execution));
  } else return false;
  return true;
}

/** Records an outcome that only Temporal knew of, and wakes the workflows that wait for it. */
async function end(
  { journal, policies, schedules, backfills }: ReconcilerDependencies,
  run: StartableRun,
  status: 'Terminated' | 'TimedOut' | 'Cancelled',
  latestError: string,
): Promise<void> {
  await endRun(journal, policies, run.run_id, { status, latest_error: latestError });
  await schedules.start(run.batch_export_id);
  if (run.backfill_id !== null) await backfills.start(run.backfill_id);
}

/** Starts missing backfills and restarts stuck ones. */
async function reconcileBackfills(dependencies: ReconcilerDependencies, pass: Pass): Promise<void> {
  const { journal, backfills, settings } = dependencies;
  await checkExecutions(dependencies, pass, {
    workflowType: workflowTypes.backfill,
    expected: (await activeBackfills(journal.pool, settings.EXPORTD_RECONCILE_INTERVAL)).map((backfill) => ({
      ...backfill,
      workflow_id: workflowIds(settings).backfill(backfill.id),
    })),
    repair: async ({ id }, execution) => {
      if (execution?.status !== 'RUNNING') await backfills.start(id, replacementReason(execution));
      else if (isStuck(dependencies, execution)) await backfills.restart(id, replacementReason(execution));
      else return false;
      return true;
    },
  });
}

/**
 * Signals the oldest pending command of each export again, in case its first signal was lost. One signal is enough: a
 * schedule decides all pending commands. A schedule that has had a pass to decide it may be stuck, or busy and about to.
 */
export async function reconcileCommands(dependencies: ReconcilerDependencies, pass: Pass): Promise<void> {
  const { client, journal, schedules, settings } = dependencies;
  const commands = await pendingCommands(journal.pool, settings.EXPORTD_RECONCILE_INTERVAL);
  pass.counts.expected += commands.length;
  await pass.forEachItem(
    commands,
    ({ batch_export_id }) => batch_export_id,
    async (command) => {
      if (command.is_old) {
        const workflowId = workflowIds(settings).schedule(command.batch_export_id);
        const execution = await describeExecution(client, workflowId);
        pass.counts.described += 1;
        if (execution && isStuck(dependencies, execution)) {
          pass.counts.stuck += 1;
          await schedules.restart(command.batch_export_id, replacementReason(execution));
          return true;
        }
        if (execution?.status === 'RUNNING' && execution.is_busy) return false;
      }
      await schedules.signal(command);
      return true;
    },
  );
}

/** Stores the manual signals of schedules that ended before they stored them. */
async function recoverManualSignals({ signalRecovery }: ReconcilerDependencies, pass: Pass): Promise<void> {
  await pass.forEachItem(
    await signalRecovery.endedSchedules(),
    ({ temporal_run_id }) => temporal_run_id,
    (schedule) => signalRecovery.recover(schedule),
  );
}

/** Ends executions of runs with a terminal status: their cancellation was lost, or they are stuck. */
async function cancelOrphanedExecutions(dependencies: ReconcilerDependencies, pass: Pass): Promise<void> {
  const { journal, executionLists } = dependencies;
  const listed = (await executionLists.running(workflowTypes.run)).flatMap(({ run_id }) => run_id ?? []);
  const runIds = listed.flatMap((id) => [id, deterministicId('continue', id)]);
  await pass.forEachItem(
    await endedRuns(journal.pool, runIds),
    (id) => id,
    (id) => endExecution(dependencies, pass, id),
  );
}

async function endExecution(
  dependencies: ReconcilerDependencies,
  pass: Pass,
  runId: string,
): Promise<boolean> {
  const { journal, client, runs, settings } = dependencies;
  const run = await readStartableRun(journal.pool, runId);
  if (!run) return false;
  const workflowId = workflowIds(settings).run(run);
  const execution = await describeExecution(client, workflowId);
  pass.counts.described += 1;
  if (execution?.status !== 'RUNNING' || !isExecutionOf(run, execution)) return false;
  if (!isStuck(dependencies, execution)) {
    await runs.cancel(run);
    return true;
  }
  pass.counts.stuck += 1;
  await client.workflow
    .getHandle(workflowId, execution.temporal_run_id)
    .terminate('The run has ended, and its workflow is stuck.');
  return true;
}

/** Starts the maintenance of the deployment when it does not run, and restarts it when it is stuck. */
async function reconcileMaintenance(dependencies: ReconcilerDependencies, pass: Pass): Promise<void> {
  const { client, maintenance } = dependencies;
  pass.counts.expected += 1;
  await pass.forEachItem(
    [maintenance.workflowId],
    (workflowId) => workflowId,
    async (workflowId) => {
      const execution = await describeExecution(client, workflowId);
      pass.counts.described += 1;
      if (execution?.status !== 'RUNNING') await maintenance.start();
      else if (isStuck(dependencies, execution)) await maintenance.restart();
      else return false;
      return true;
    },
  );
}

/** Deletes what modules store of exports and has expired, such as log lines. */
async function deleteExpiredRows({ journal, settings }: ReconcilerDependencies): Promise<void> {
  await deleteExpired(journal.pool, settings.EXPORTD_LOG_RETENTION, storedRows);
}

/** Drops the read models that a switch to a newer version has left, once their time is over. */
const dropOldReadModels = ({ journal }: ReconcilerDependencies): Promise<void> =>
  dropExpiredReadModels(journal.pool);

/** Removes the secrets of config versions that no run can need any more. */
async function removeUnneededSecrets({ journal, policies }: ReconcilerDependencies): Promise<void> {
  await inTransaction(journal.pool, (connection) =>
    removeSecrets(connection, { cleanUpMs: cleanUpTimeOf(policies.maintenance) }),
  );
}

/** Deletes events of the audit trail that have expired, and sessions of the console that have ended. */
async function deleteExpiredAccess({ journal, settings }: ReconcilerDependencies): Promise<void> {
  await deleteExpiredAuditEvents(journal.pool, settings.EXPORTD_AUDIT_RETENTION);
  await deleteEndedSessions(journal.pool, settings.EXPORTD_SESSION_IDLE_TIMEOUT);
}

/** The newest runs of an export stay: people look at them, and they decide whether it is paused. */
const newestRuns = 10;

/** Collapses the history of runs and backfills that are old enough, and purges exports that were deleted long ago. */
async function collapseExpiredHistory(
  { journal, logger, policies, settings }: ReconcilerDependencies,
  pass: Pass,
): Promise<void> {
  const counts = await collapseHistory(
    journal,
    {
      historyMs: settings.EXPORTD_HISTORY_RETENTION,
      deletedExportMs: settings.EXPORTD_DELETED_EXPORT_RETENTION,
      idempotencyKeyMs: idempotencyKeyRetentionMs,
      newestRuns: Math.max(newestRuns, policies.pauseAfterFailures),
    },
    storedRows,
    () => pass.isOver(),
  );
  if (Object.values(counts).some((count) => count > 0))
    logger.info(counts, 'Collapsed old history, or purged deleted exports.');
}

/** The reconcilers of exports, by their names in logs and metrics. They do not depend on each other. */
export const reconcilers: Readonly<Record<string, Reconciler>> = {
  // A namespace that was lost comes back without them, and rejects every start that uses one.
  search_attributes: ({ ensureSearchAttributes }, { signal }) => ensureSearchAttributes(signal),
  schedules: reconcileSchedules,
  manual_signals: recoverManualSignals,
  commands: reconcileCommands,
  runs: reconcileRuns,
  backfills: reconcileBackfills,
  // Before the conditions are compared.
  destinations: probeDestinations,
  maintenance: reconcileMaintenance,
  orphaned_executions: cancelOrphanedExecutions,
  expired_rows: deleteExpiredRows,
  expired_access: deleteExpiredAccess,
  expired_history: collapseExpiredHistory,
  unneeded_secrets: removeUnneededSecrets,
  old_read_models: dropOldReadModels,
};
