import {
  condition,
  isCancellation,
  proxyActivities,
  TemporalFailure,
  workflowInfo,
} from '@temporalio/workflow';
import type { UpkeepActivities, UpkeepRound } from '../activities/maintenance.ts';
import type { UpkeepTask } from '../src/decisions/upkeep_due.ts';
import { upkeepPolicy, upkeepTasksAtOnce } from './policies.ts';
import type { PutOffTasks } from './put_off.ts';
import type { UpkeepSummary } from './upkeep_details.ts';

/** The tasks of the upkeep under way, a few at a time, each for one export. */
export interface RunningTasks {
  /** Goes on with what a look has found, in place of what an earlier one left. */
  take(round: UpkeepRound): void;
  /** Names of the tasks under way. One that hangs keeps its own place and no other. */
  running(): string[];
  /** Whether everything that was taken is done. */
  isIdle(): boolean;
  /** What was done since this was asked last. */
  summary(): UpkeepSummary;
  /** Whether the execution has come to its end: its history is long, or its code met an error. */
  mustStop(): boolean;
  /** Begins nothing more and waits for what is under way. Throws the error that the code met. */
  drain(): Promise<void>;
}

const nothing = (): UpkeepSummary => ({ removed: 0, counted: 0, differing: 0 });

/** Runs tasks on a task queue; one that fails is put off, and is that export's matter alone. */
export function upkeepTasks(taskQueue: string, putOff: PutOffTasks): RunningTasks {
  const running = new Set<string>();
  const faults: unknown[] = [];
  let waiting: UpkeepTask[] = [];
  let current: UpkeepRound | undefined;
  let summary = nothing();
  let draining = false;

  const mustStop = (): boolean => faults.length > 0 || workflowInfo().continueAsNewSuggested;

  const fill = (): void => {
    while (current && running.size < upkeepTasksAtOnce && !draining && !mustStop()) {
      const task = waiting.shift();
      if (!task) return;
      running.add(nameOf(task));
      // Never rejects: what it met is noted.
      void run(task, current).finally(fill);
    }
  };

  const run = async (task: UpkeepTask, round: UpkeepRound): Promise<void> => {
    const name = nameOf(task);
    try {
      const { removed = 0, counted = 0, differing = 0, more } = await doTask(taskQueue, round, task);
      summary.removed += removed;
      summary.counted += counted;
      summary.differing += differing;
      putOff.remove(name);
      if (more) waiting.push(task);
    } catch (error) {
      if (error instanceof TemporalFailure && !isCancellation(error))
        putOff.add(name, reasonOf(error), Date.now());
      else faults.push(error);
    } finally {
      running.delete(name);
    }
  };

  return {
    take: (round) => {
      current = round;
      // Those that failed last time come last: they may keep a place busy until their server's time is up.
      waiting = round.tasks.toSorted(
        (one, other) => putOff.failuresOf(nameOf(one)) - putOff.failuresOf(nameOf(other)),
      );
      fill();
    },
    running: () => [...running],
    isIdle: () => running.size === 0 && waiting.length === 0,
    summary: () => {
      const done = summary;
      summary = nothing();
      return done;
    },
    mustStop,
    drain: async () => {
      draining = true;
      await condition(() => running.size === 0);
      if (faults.length > 0) throw faults[0];
    },
  };
}

type Outcome = Partial<UpkeepSummary> & { readonly more: boolean };

function doTask(
  taskQueue: string,
  round: UpkeepRound,
  { kind, batch_export_id }: UpkeepTask,
): Promise<Outcome> {
  const activities = proxyActivities<UpkeepActivities>({
    ...upkeepPolicy[kind](round),
    taskQueue,
    summary: `batch export ${batch_export_id}`,
  });
  return activities[kind]({ batch_export_id });
}

const nameOf = ({ kind, batch_export_id }: UpkeepTask): string => `${kind}/${batch_export_id}`;

/** The message of the innermost error, which is written for people. */
export const reasonOf = (error: Error): string =>
  error.cause instanceof Error ? reasonOf(error.cause) : error.message;
