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
import type { UpkeepLook, UpkeepRound } from '../activities/maintenance.ts';
import type { UpkeepInput } from '../src/contract/workflow_inputs.ts';
import { recordingPolicy } from './policies.ts';
import { putOffTasks } from './put_off.ts';
import { upkeepDetails } from './upkeep_details.ts';
import { reasonOf, upkeepTasks } from './upkeep_tasks.ts';

const looking = proxyLocalActivities<UpkeepLook>(recordingPolicy);

/**
 * Cleans up after runs and counts their intervals again, for all exports of a deployment: looks what is due, has it
 * done, a few exports at a time, and looks again after a while. What is due is read from the journal each time; this
 * remembers only what failed, so that a bucket which cannot be reached is asked ever more rarely. Never ends by itself.
 */
export async function batchExportUpkeep(input: UpkeepInput): Promise<void> {
  // May have been started by hand with anything.
  const taskQueue = taskQueueOf(input);
  if (typeof taskQueue !== 'string')
    throw ApplicationFailure.nonRetryable('The input has to name a task queue.', 'InvalidInput');
  let woken = false;
  setDefaultSignalHandler(() => {
    woken = true;
  });
  let intervalMs = refusedMs;
  const putOff = putOffTasks(input.put_off ?? [], () => ({
    initial_ms: intervalMs,
    maximum_ms: intervalMs * longestWaitIntervals,
  }));
  const tasks = upkeepTasks(taskQueue, putOff);
  for (let rounds = 1; ; rounds += 1) {
    woken = false;
    // Time in a workflow is Temporal's, the same in every replay.
    const round = await look([...putOff.waiting(Date.now()), ...tasks.running()]);
    intervalMs = round?.interval_ms ?? refusedMs;
    if (round) tasks.take(round);
    const isDue = () => woken || tasks.mustStop() || (round?.more === true && tasks.isIdle());
    await condition(isDue, intervalMs);
    if (round) setCurrentDetails(upkeepDetails(tasks.summary(), tasks.running().length, putOff.all()));
    if (!tasks.mustStop() && rounds < (round?.continue_after ?? Infinity)) continue;
    await tasks.drain();
    await continueAsNew<typeof batchExportUpkeep>({ ...input, put_off: putOff.all() });
  }
}

const taskQueueOf = (input: UpkeepInput | undefined): unknown =>
  input?.upkeep_task_queue ?? input?.export_task_queue?.replace(/-export$/, '-upkeep');

/** How long a database that refused to answer is left alone. */
const refusedMs = 60_000;
/** The longest wait of a task that keeps failing, in intervals between looks: an hour, when they are a minute apart. */
const longestWaitIntervals = 60;

/** What there is to do; undefined when the database refuses for a reason that only a person can cure. */
async function look(putOff: readonly string[]): Promise<UpkeepRound | undefined> {
  try {
    return await looking.findUpkeep({ put_off: putOff });
  } catch (error) {
    if (isCancellation(error) || !(error instanceof TemporalFailure)) throw error;
    setCurrentDetails(`Waiting: ${reasonOf(error)}`);
    return undefined;
  }
}
