import {
  ApplicationFailure,
  condition,
  continueAsNew,
  isCancellation,
  proxyLocalActivities,
  setCurrentDetails,
  setDefaultSignalHandler,
  TemporalFailure,
} from '@temporalio/workflow';
import type { MaintenancePlanner, MaintenanceRound } from '../activities/maintenance.ts';
import type { MaintenanceInput } from '../src/contract/workflow_inputs.ts';
import { journalOptions } from './activity_options.ts';
import { createTaskBackoff } from './backoff.ts';
import { maintenanceDetails } from './maintenance_details.ts';
import { reasonOf, createTaskRunner } from './maintenance_tasks.ts';

const planner = proxyLocalActivities<MaintenancePlanner>(journalOptions);

/**
 * Deletes obsolete objects and compares exported intervals with the source, for all exports of a deployment. Each round
 * reads the due tasks from the journal and runs them, a few at a time. The workflow remembers only failed tasks, to back
 * off from servers that cannot be reached. Runs until it is terminated.
 * @throws ApplicationFailure `InvalidInput`
 */
export async function batchExportMaintenance(input: MaintenanceInput | undefined): Promise<void> {
  // A manual start may pass any input.
  if (typeof input?.task_queue !== 'string')
    throw ApplicationFailure.nonRetryable('The input needs a task_queue.', 'InvalidInput');
  let woken = false;
  setDefaultSignalHandler(() => {
    woken = true;
  });
  let intervalMs = databaseRetryMs;
  const backoff = createTaskBackoff(input.delayed_tasks ?? [], () => ({
    initial_ms: intervalMs,
    maximum_ms: intervalMs * maxDelayIntervals,
  }));
  const tasks = createTaskRunner(input.task_queue, backoff);
  for (let rounds = 1; ; rounds += 1) {
    woken = false;
    // In workflows Date.now() is deterministic: replays return the recorded time.
    const round = await findDueTasks([...backoff.delayedNames(Date.now()), ...tasks.running()]);
    intervalMs = round?.interval_ms ?? databaseRetryMs;
    if (round) tasks.start(round);
    const isDue = () => woken || tasks.mustStop() || (round?.has_more === true && tasks.isIdle());
    await condition(isDue, intervalMs);
    if (round)
      setCurrentDetails(
        maintenanceDetails(tasks.takeSummary(), tasks.running().length, backoff.delayedTasks()),
      );
    if (!tasks.mustStop() && rounds < (round?.continue_after ?? Infinity)) continue;
    await tasks.drain();
    await continueAsNew<typeof batchExportMaintenance>({ ...input, delayed_tasks: backoff.delayedTasks() });
  }
}

/** Delay after the database has rejected the query for due tasks. */
const databaseRetryMs = 60_000;
/** Maximum delay of a failing task, in rounds: an hour at one round per minute. */
const maxDelayIntervals = 60;

/** Returns the due tasks except `excluded`; undefined when the query fails with an error that only an operator can fix. */
async function findDueTasks(excluded: readonly string[]): Promise<MaintenanceRound | undefined> {
  try {
    return await planner.findDueMaintenance({ excluded });
  } catch (error) {
    if (isCancellation(error) || !(error instanceof TemporalFailure)) throw error;
    setCurrentDetails(`Waiting: ${reasonOf(error)}`);
    return undefined;
  }
}
