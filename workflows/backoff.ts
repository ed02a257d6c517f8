import type { DelayedTask } from '../src/contract/workflow_inputs.ts';

/** Failed tasks with exponential backoff: each waits until its next attempt. */
export interface TaskBackoff {
  /** Delays a task after a failure. The delay doubles with each consecutive failure. `now` is in ms since 1970. */
  recordFailure(name: string, reason: string, now: number): void;
  /** Forgets the failures of a task. */
  recordSuccess(name: string): void;
  /** Consecutive failures of a task. */
  failureCount(name: string): number;
  /** Names of the tasks that may not run yet at `now`. */
  delayedNames(now: number): string[];
  /** All tasks whose last attempt failed, the next due first. The next execution starts with them. */
  delayedTasks(): readonly DelayedTask[];
}

/** Bounds the input of the next execution. A task beyond the limit is forgotten, and so only retried sooner. */
const maxTasks = 500;

/** Delay after the first failure and maximum delay, in milliseconds. */
export interface BackoffBounds {
  readonly initial_ms: number;
  readonly maximum_ms: number;
}

/** Continues with the delayed tasks of the previous execution. `bounds` may return other values from call to call. */
export function createTaskBackoff(carried: readonly DelayedTask[], bounds: () => BackoffBounds): TaskBackoff {
  const tasks = new Map(carried.map((task) => [task.name, task]));
  const delayedTasks = (): DelayedTask[] =>
    [...tasks.values()].sort((one, other) => one.retry_at_ms - other.retry_at_ms);
  const failureCount = (name: string): number => tasks.get(name)?.failures ?? 0;
  return {
    recordFailure: (name, reason, now) => {
      const { initial_ms, maximum_ms } = bounds();
      const failures = failureCount(name) + 1;
      const retry_at_ms = now + Math.min(maximum_ms, initial_ms * 2 ** Math.min(failures - 1, 30));
      tasks.set(name, { name, failures, retry_at_ms, reason });
      for (const { name: soonestName } of delayedTasks().slice(0, Math.max(0, tasks.size - maxTasks)))
        tasks.delete(soonestName);
    },
    recordSuccess: (name) => {
      tasks.delete(name);
    },
    failureCount,
    delayedNames: (now) =>
      delayedTasks().flatMap(({ name, retry_at_ms }) => (retry_at_ms > now ? [name] : [])),
    delayedTasks,
  };
}
