import {
  ApplicationFailure,
  condition,
  continueAsNew,
  isCancellation,
  proxyActivities,
  proxyLocalActivities,
  setCurrentDetails,
  setDefaultSignalHandler,
  TemporalFailure,
  workflowInfo,
} from '@temporalio/workflow';
import type {
  MaintenanceActivities,
  MaintenancePlanner,
  MaintenanceRound,
} from '../activities/maintenance.ts';
import type { DelayedTask, MaintenanceInput } from '../src/contract/workflow_inputs.ts';
import type { MaintenanceKind, MaintenanceTask } from '../src/decisions/due_maintenance.ts';
import { journalOptions, maintenanceOptions, maxConcurrentMaintenanceTasks } from './activity_options.ts';
import { traced } from './stack_traces.ts';
import { until } from './summaries.ts';

/** Bounds the input of the next execution. A task beyond the limit is forgotten, and so only retried sooner. */
const maxTasks = 500;

/**
 * Failed tasks with exponential backoff: each waits until its next attempt. Continues with those of the previous execution.
 * @param bounds the delay after the first failure and the maximum delay, in milliseconds; they may differ from call to call
 */
export function createTaskBackoff(
  carried: readonly DelayedTask[],
  bounds: () => { readonly initial_ms: number; readonly maximum_ms: number },
) {
  const tasks = new Map(carried.map((task) => [task.name, task]));
  /** All tasks whose last attempt failed, the next due first. The next execution starts with them. */
  const delayedTasks = (): DelayedTask[] =>
    [...tasks.values()].sort((one, other) => one.retry_at_ms - other.retry_at_ms);
  /** Consecutive failures of a task. */
  const failureCount = (name: string): number => tasks.get(name)?.failures ?? 0;
  return {
    /** Delays a task after a failure. The delay doubles with each consecutive failure. `now` is in ms since 1970. */
    recordFailure: (name: string, reason: string, now: number): void => {
      const { initial_ms, maximum_ms } = bounds();
      const failures = failureCount(name) + 1;
      const retry_at_ms = now + Math.min(maximum_ms, initial_ms * 2 ** Math.min(failures - 1, 30));
      tasks.set(name, { name, failures, retry_at_ms, reason });
      for (const { name: soonestName } of delayedTasks().slice(0, Math.max(0, tasks.size - maxTasks)))
        tasks.delete(soonestName);
    },
    /** Forgets the failures of a task. */
    recordSuccess: (name: string): void => {
      tasks.delete(name);
    },
    failureCount,
    /** Names of the tasks that may not run yet at `now`. */
    delayedNames: (now: number): string[] =>
      delayedTasks().flatMap(({ name, retry_at_ms }) => (retry_at_ms > now ? [name] : [])),
    delayedTasks,
  };
}

/** Work done since the previous round. */
interface MaintenanceSummary {
  /** Objects deleted from buckets. */
  deleted: number;
  /** Intervals compared with the source. */
  compared: number;
  /** Those of them that are exported again. */
  differing: number;
  /** Unsettled intervals whose transactions have ended, and that were followed up. */
  settled: number;
}

/** How many delayed tasks are listed. */
const maxListedTasks = 5;

/** Formats the state of the maintenance for the Temporal UI: a status line, then a line for each failing task. */
export function maintenanceDetails(
  { deleted, compared, differing, settled }: MaintenanceSummary,
  running: number,
  delayed: readonly DelayedTask[],
): string {
  const parts = [
    deleted > 0 ? `deleted ${count(deleted, 'object')}` : '',
    compared > 0 ? `compared ${count(compared, 'interval')}, ${differing} exported again` : '',
    settled > 0 ? `settled ${count(settled, 'interval')}` : '',
    running > 0 ? `${count(running, 'task')} in progress` : '',
    delayed.length > 0 ? `${count(delayed.length, 'task')} delayed after failures` : '',
  ].filter((part) => part !== '');
  const failing = delayed
    .slice(0, maxListedTasks)
    .map(
      ({ name, failures, retry_at_ms, reason }) =>
        `- ${name} failed ${count(failures, 'time')}, next attempt ${new Date(retry_at_ms).toISOString()}: ${reason}`,
    );
  const rest = delayed.length > maxListedTasks ? [`- and ${delayed.length - maxListedTasks} more`] : [];
  const round = `Since the previous round: ${parts.join('; ') || 'nothing to do'}`;
  // A list of Markdown needs an empty line before it.
  return failing.length === 0 ? round : `${round}\n\n${[...failing, ...rest].join('\n')}`;
}

const count = (number: number, noun: string): string => `${number} ${noun}${number === 1 ? '' : 's'}`;

const emptySummary = (): MaintenanceSummary => ({ deleted: 0, compared: 0, differing: 0, settled: 0 });

/**
 * Runs maintenance tasks on a task queue, a few at a time. Each task is for one export, or for intervals that are compared
 * together. A failed task is delayed and does not affect other exports.
 */
function createTaskRunner(taskQueue: string, backoff: ReturnType<typeof createTaskBackoff>) {
  const running = new Set<string>();
  const errors: unknown[] = [];
  let waiting: MaintenanceTask[] = [];
  let current: MaintenanceRound | undefined;
  let summary = emptySummary();
  let draining = false;

  /** Whether the execution must end, because its history is long or its code has thrown an error. */
  const mustStop = (): boolean => errors.length > 0 || workflowInfo().continueAsNewSuggested;

  const startTasks = (): void => {
    while (current && running.size < maxConcurrentMaintenanceTasks && !draining && !mustStop()) {
      const task = waiting.shift();
      if (!task) return;
      running.add(nameOf(task));
      // Never rejects: errors are collected.
      void runTask(task, current).finally(startTasks);
    }
  };

  const runTask = async (task: MaintenanceTask, round: MaintenanceRound): Promise<void> => {
    const name = nameOf(task);
    try {
      const {
        deleted = 0,
        compared = 0,
        differing = 0,
        settled = 0,
        has_more,
      } = await doTask(taskQueue, round, task);
      summary.deleted += deleted;
      summary.compared += compared;
      summary.differing += differing;
      summary.settled += settled;
      backoff.recordSuccess(name);
      if (has_more) waiting.push(task);
    } catch (error) {
      if (error instanceof TemporalFailure && !isCancellation(error))
        backoff.recordFailure(name, reasonOf(error), Date.now());
      else errors.push(error);
    } finally {
      running.delete(name);
    }
  };

  return {
    /** Runs the tasks of a round. They replace the waiting tasks of the previous round. */
    start: (round: MaintenanceRound): void => {
      current = round;
      // Failing tasks run last: they may occupy a slot until a request times out.
      waiting = round.tasks.toSorted(
        (one, other) => backoff.failureCount(nameOf(one)) - backoff.failureCount(nameOf(other)),
      );
      startTasks();
    },
    /** Names of the running tasks. A task that hangs occupies one slot only. */
    running: () => [...running],
    isIdle: () => running.size === 0 && waiting.length === 0,
    /** Returns the work done since the previous call. */
    takeSummary: (): MaintenanceSummary => {
      const done = summary;
      summary = emptySummary();
      return done;
    },
    mustStop,
    /** Starts no more tasks and waits for the running ones. Throws the error that the code has thrown, if any. */
    drain: async (): Promise<void> => {
      draining = true;
      await traced(condition(() => running.size === 0));
      if (errors.length > 0) throw errors[0];
    },
  };
}

type Outcome = Partial<MaintenanceSummary> & { readonly has_more: boolean };

function doTask(taskQueue: string, round: MaintenanceRound, task: MaintenanceTask): Promise<Outcome> {
  const activities = proxyActivities<MaintenanceActivities>({
    ...maintenanceOptions[task.kind](round),
    taskQueue,
    summary: summaries[task.kind](task.input),
  });
  // The kind determines the type of the input, which the compiler cannot follow through the proxy.
  const activity = activities[task.kind] as (input: MaintenanceTask['input']) => Promise<Outcome>;
  return activity(task.input);
}

/** What the Temporal UI shows for the activity of each kind. */
const summaries: Readonly<Record<MaintenanceKind, (input: MaintenanceTask['input']) => string>> = {
  cleanUpExport: (input) => ('batch_export_id' in input ? `batch export ${input.batch_export_id}` : ''),
  compareIntervals: (input) => ('team_id' in input ? `project ${input.team_id}` : ''),
  checkBarriers: () => 'open transactions of the source',
  settleRuns: (input) => ('batch_export_id' in input ? `batch export ${input.batch_export_id}` : ''),
};

const nameOf = ({ kind, input }: MaintenanceTask): string =>
  [kind, ...Object.values(input as Readonly<Record<string, string | number>>)].join('/');

/** Returns the message of the innermost cause, which is the one for people. */
const reasonOf = (error: Error): string =>
  error.cause instanceof Error ? reasonOf(error.cause) : error.message;

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
    await condition(isDue, intervalMs, until(intervalMs, 'the next round'));
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
