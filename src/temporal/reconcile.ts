import { isGrpcServiceError, ServiceError, type Client } from '@temporalio/client';
import type { Settings } from '../config/settings.ts';
import { overdueExports } from '../decisions/overdue_exports.ts';
import { dueDeliveries, droppedDeliveries } from '../decisions/deliveries.ts';
import type { Policies } from '../decisions/policies.ts';
import { endRun } from '../decisions/run_endings.ts';
import { startableRun, type StartableRun } from '../decisions/startable_runs.ts';
import { idFromCause, type Journal } from '../journal/journal.ts';
import type { Logger } from '../telemetry/logger.ts';
import {
  backfillWorkflowId,
  notificationIdIn,
  notificationWorkflowId,
  runWorkflowId,
  scheduleWorkflowId,
  workflowTypes,
} from '../../workflows/messages.ts';
import type { BackfillClient } from './backfill_client.ts';
import { forEachConcurrently } from './concurrency.ts';
import { describeExecution, isExecutionOf, runIdOf, type Execution } from './executions.ts';
import {
  activeBackfills,
  activeRuns,
  endedRuns,
  isActiveRun,
  liveExports,
  waitingCommands,
} from './expected_executions.ts';
import { isRefusal } from '../../activities/refusals.ts';
import type { LostSignals } from './lost_signals.ts';
import type { NotificationClient } from './notification_client.ts';
import type { RunStarter } from './run_starter.ts';
import type { ScheduleClient } from './schedule_client.ts';
import { taskQueues } from './task_queues.ts';
import type { UpkeepClient } from './upkeep_client.ts';

/** What a pass reads, and whom it starts. */
export interface ReconcileDependencies {
  readonly journal: Journal;
  readonly policies: Policies;
  readonly client: Client;
  readonly schedules: ScheduleClient;
  readonly runs: RunStarter;
  readonly backfills: BackfillClient;
  readonly upkeep: UpkeepClient;
  readonly notifications: NotificationClient;
  readonly lostSignals: LostSignals;
  readonly settings: Pick<Settings, 'EXPORTD_TASK_QUEUE' | 'EXPORTD_RECONCILE_INTERVAL_MS'>;
  readonly logger: Logger;
}

/** Requests to Temporal that are under way at once, so that a pass leaves room for the work itself. */
const requestsAtOnce = 8;

/**
 * From this attempt of one workflow task on a workflow counts as stuck, after about a quarter of a minute. A killed
 * worker or an overloaded machine costs an attempt or two; an error in a workflow's code costs them all.
 */
const stuckAttempt = 5;

const isStuck = (execution: Execution): boolean =>
  execution.status === 'RUNNING' && execution.task_attempt >= stuckAttempt;

/** One pass over everything that should run: starts what is missing, records what was ended from outside. */
export async function reconcile(dependencies: ReconcileDependencies): Promise<void> {
  const { journal, client, schedules, backfills, upkeep } = dependencies;
  const { pool } = journal;
  const { EXPORTD_RECONCILE_INTERVAL_MS: graceMs } = dependencies.settings;
  const overdue = await overdueExports(pool, dependencies.policies, graceMs);
  await each(dependencies, await liveExports(pool), async (id) => {
    const execution = await describeExecution(client, scheduleWorkflowId(id));
    if (execution && isStuck(execution)) await schedules.replace(id);
    else if (execution?.status !== 'RUNNING' || overdue.has(id)) await schedules.start(id);
  });
  await each(dependencies, [dependencies.lostSignals], (lost) => lost.store());
  await each(dependencies, await waitingCommands(pool), (command) => schedules.signal(command));
  await each(dependencies, await activeRuns(pool), (runId) => reconcileRun(dependencies, runId));
  await each(dependencies, await activeBackfills(pool), async (id) => {
    const execution = await describeExecution(client, backfillWorkflowId(id));
    if (execution?.status !== 'RUNNING') await backfills.start(id);
    else if (isStuck(execution)) await backfills.replace(id);
  });
  await each(dependencies, [upkeep.workflowId], async (workflowId) => {
    const execution = await describeExecution(client, workflowId);
    if (execution?.status !== 'RUNNING') await upkeep.start();
    else if (isStuck(execution)) await upkeep.replace();
  });
  await endLeftovers(dependencies);
  await reconcileDeliveries(dependencies);
}

/**
 * Does one thing for each item. An item that fails does not keep the others from their turn, unless Temporal does not
 * answer: then the pass ends, instead of asking it a thousand times more.
 */
async function each<Item>(
  { logger }: ReconcileDependencies,
  items: readonly Item[],
  work: (item: Item) => Promise<unknown>,
): Promise<void> {
  await forEachConcurrently(items, requestsAtOnce, async (item) => {
    try {
      await work(item);
    } catch (error) {
      if (!isRefusal(error) && (error instanceof ServiceError || isGrpcServiceError(error))) throw error;
      logger.error({ err: error, item }, 'The reconciler could not mend an item.');
    }
  });
}

async function reconcileRun(dependencies: ReconcileDependencies, runId: string): Promise<void> {
  const { journal, client, runs, logger } = dependencies;
  const run = await startableRun(journal.pool, runId);
  if (!run) return;
  const latest = await describeExecution(client, runWorkflowId(run));
  const execution = latest && isExecutionOf(run, latest) ? latest : undefined;
  if (execution?.status === 'TERMINATED') {
    await end(dependencies, run, 'Terminated', 'Terminated in Temporal.');
  } else if (execution?.status === 'TIMED_OUT') {
    await end(dependencies, run, 'TimedOut', 'The run took longer than it is allowed to.');
  } else if (execution?.status === 'CANCELLED') {
    await end(dependencies, run, 'Cancelled', 'Cancelled in Temporal.');
  } else if (execution?.status === 'RUNNING') {
    if (!isStuck(execution)) return;
    logger.warn({ run_id: runId }, 'A run whose workflow is stuck is started again.');
    await runs.replace(run);
  } else if (await isActiveRun(journal.pool, runId)) {
    // It did not end meanwhile. Unknown to Temporal, or the interval's last execution belongs to another run: this one
    // never began.
    if (execution)
      logger.warn({ run_id: runId, status: execution.status }, 'A run is started again on its row.');
    await runs.start(run);
  }
}

/** Records an ending that only Temporal knew of, and wakes whoever waits for it. */
async function end(
  { journal, policies, schedules, backfills }: ReconcileDependencies,
  run: StartableRun,
  status: 'Terminated' | 'TimedOut' | 'Cancelled',
  latestError: string,
): Promise<void> {
  await endRun(journal, policies, run.run_id, { status, latest_error: latestError });
  await schedules.start(run.batch_export_id);
  if (run.backfill_id !== null) await backfills.start(run.backfill_id);
}

/** Ends executions of runs that have a terminal status: the request to cancel them was lost, or they are stuck. */
async function endLeftovers(dependencies: ReconcileDependencies): Promise<void> {
  const { journal, client, runs, settings } = dependencies;
  const query = `WorkflowType = '${workflowTypes.run}' AND ExecutionStatus = 'Running' AND TaskQueue = '${taskQueues(settings).control}'`;
  const running: string[] = [];
  for await (const { memo } of client.workflow.list({ query })) {
    const runId = runIdOf(memo);
    if (runId !== undefined) running.push(runId, idFromCause('continue', runId));
  }
  await each(dependencies, await endedRuns(journal.pool, running), async (id) => {
    const run = await startableRun(journal.pool, id);
    if (!run) return;
    const execution = await describeExecution(client, runWorkflowId(run));
    if (!execution || !isExecutionOf(run, execution) || !isStuck(execution)) await runs.cancel(run);
    else
      await client.workflow
        .getHandle(runWorkflowId(run), execution.temporal_run_id)
        .terminate('The run has ended, and its workflow is stuck.');
  });
}

/** Starts deliveries of notifications that are due and do not run, and ends those of webhooks and exports that are gone. */
async function reconcileDeliveries(dependencies: ReconcileDependencies): Promise<void> {
  const { journal, client, notifications, settings } = dependencies;
  await each(dependencies, await dueDeliveries(journal.pool), async (id) => {
    const execution = await describeExecution(client, notificationWorkflowId(id));
    if (execution?.status !== 'RUNNING') await notifications.start(id);
    else if (isStuck(execution)) await notifications.replace(id);
  });
  const query = `WorkflowType = '${workflowTypes.notification}' AND ExecutionStatus = 'Running' AND TaskQueue = '${taskQueues(settings).control}'`;
  const running: string[] = [];
  for await (const { workflowId } of client.workflow.list({ query })) {
    const id = notificationIdIn(workflowId);
    if (id !== undefined) running.push(id);
  }
  const dropped = await droppedDeliveries(journal.pool, running);
  await each(dependencies, dropped, (id) => notifications.cancel(id));
}
