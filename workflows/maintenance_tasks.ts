import {
  condition,
  isCancellation,
  proxyActivities,
  TemporalFailure,
  workflowInfo,
} from '@temporalio/workflow';
import type { MaintenanceActivities, MaintenanceRound } from '../activities/maintenance.ts';
import type { MaintenanceKind, MaintenanceTask } from '../src/decisions/due_maintenance.ts';
import { maintenanceOptions } from './activity_options.ts';
import { maxConcurrentMaintenanceTasks } from './limits.ts';
import type { TaskBackoff } from './backoff.ts';
import type { MaintenanceSummary } from './maintenance_details.ts';

/** Runs maintenance tasks, a few at a time. Each task is for one export, or for intervals that are compared together. */
export interface TaskRunner {
  /** Runs the tasks of a round. They replace the waiting tasks of the previous round. */
  start(round: MaintenanceRound): void;
  /** Names of the running tasks. A task that hangs occupies one slot only. */
  running(): string[];
  /** Whether no task runs or waits. */
  isIdle(): boolean;
  /** Returns the work done since the previous call. */
  takeSummary(): MaintenanceSummary;
  /** Whether the execution must end, because its history is long or its code has thrown an error. */
  mustStop(): boolean;
  /** Starts no more tasks and waits for the running ones. Throws the error that the code has thrown, if any. */
  drain(): Promise<void>;
}

const emptySummary = (): MaintenanceSummary => ({
  deleted: 0,
  compared: 0,
  differing: 0,
  settled: 0,
});

/** Creates a runner on a task queue. A failed task is delayed and does not affect other exports. */
export function createTaskRunner(taskQueue: string, backoff: TaskBackoff): TaskRunner {
  const running = new Set<string>();
  const errors: unknown[] = [];
  let waiting: MaintenanceTask[] = [];
  let current: MaintenanceRound | undefined;
  let summary = emptySummary();
  let draining = false;

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
    start: (round) => {
      current = round;
      // Failing tasks run last: they may occupy a slot until a request times out.
      waiting = round.tasks.toSorted(
        (one, other) => backoff.failureCount(nameOf(one)) - backoff.failureCount(nameOf(other)),
      );
      startTasks();
    },
    running: () => [...running],
    isIdle: () => running.size === 0 && waiting.length === 0,
    takeSummary: () => {
      const done = summary;
      summary = emptySummary();
      return done;
    },
    mustStop,
    drain: async () => {
      draining = true;
      await condition(() => running.size === 0);
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
export const reasonOf = (error: Error): string =>
  error.cause instanceof Error ? reasonOf(error.cause) : error.message;
