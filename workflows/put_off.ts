import type { PutOffTask } from '../src/contract/workflow_inputs.ts';

/** Tasks that failed and wait before they are tried again, each longer than the last time. */
export interface PutOffTasks {
  /** Puts a task off after a failure; the wait doubles with each one in a row. */
  add(name: string, reason: string, now: number): void;
  /** Forgets the failures of a task that has succeeded. */
  remove(name: string): void;
  /** How often a task has failed in a row. */
  failuresOf(name: string): number;
  /** Names of the tasks that have to wait longer than now. */
  waiting(now: number): string[];
  /** All that failed last time, soonest first; what the next execution goes on with. */
  all(): readonly PutOffTask[];
}

/** More are not remembered: they travel from execution to execution. Those that are forgotten are only tried sooner. */
const tasksMaximum = 500;

/** Milliseconds of the first wait, and of the longest. */
export interface PutOffWaits {
  readonly initial_ms: number;
  readonly maximum_ms: number;
}

/** Goes on with what an earlier execution put off. `waits` may change while tasks wait. */
export function putOffTasks(carried: readonly PutOffTask[], waits: () => PutOffWaits): PutOffTasks {
  const tasks = new Map(carried.map((task) => [task.name, task]));
  const all = (): PutOffTask[] => [...tasks.values()].sort((one, other) => one.until_ms - other.until_ms);
  const failuresOf = (name: string): number => tasks.get(name)?.failures ?? 0;
  return {
    add: (name, reason, now) => {
      const { initial_ms, maximum_ms } = waits();
      const failures = failuresOf(name) + 1;
      const until_ms = now + Math.min(maximum_ms, initial_ms * 2 ** Math.min(failures - 1, 30));
      tasks.set(name, { name, failures, until_ms, reason });
      for (const { name: soonest } of all().slice(0, Math.max(0, tasks.size - tasksMaximum)))
        tasks.delete(soonest);
    },
    remove: (name) => {
      tasks.delete(name);
    },
    failuresOf,
    waiting: (now) => all().flatMap(({ name, until_ms }) => (until_ms > now ? [name] : [])),
    all,
  };
}
