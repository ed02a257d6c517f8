import { describe, expect, it } from '@jest/globals';
import { createTaskBackoff, maintenanceDetails } from '../../workflows/maintenance.ts';

const minute = 60_000;
const bounds = () => ({ initial_ms: minute, maximum_ms: 60 * minute });

describe('task backoff', () => {
  it('doubles the delay after each failure, up to the maximum', () => {
    const tasks = createTaskBackoff([], bounds);
    const delays = Array.from({ length: 9 }, () => {
      tasks.recordFailure('a', 'A reason.', 0);
      return (tasks.delayedTasks()[0]?.retry_at_ms ?? 0) / minute;
    });
    expect(delays).toEqual([1, 2, 4, 8, 16, 32, 60, 60, 60]);
    expect(tasks.delayedNames(60 * minute - 1)).toEqual(['a']);
    expect(tasks.delayedNames(60 * minute)).toEqual([]);
    expect(tasks.failureCount('a')).toBe(9);
  });

  it('forgets a task that succeeds', () => {
    const tasks = createTaskBackoff(
      [{ name: 'a', failures: 3, retry_at_ms: 5, reason: 'A reason.' }],
      bounds,
    );
    expect(tasks.delayedNames(4)).toEqual(['a']);
    tasks.recordSuccess('a');
    expect(tasks.delayedTasks()).toEqual([]);
    expect(tasks.failureCount('a')).toBe(0);
  });

  it('remembers a limited number of tasks and forgets those due soonest', () => {
    const tasks = createTaskBackoff([], bounds);
    for (let each = 0; each < 600; each += 1) tasks.recordFailure(`task ${each}`, 'A reason.', each);
    expect(tasks.delayedTasks()).toHaveLength(500);
    expect(tasks.delayedTasks()[0]?.name).toBe('task 100');
  });
});

describe('maintenance details', () => {
  it('list the work done and the failing tasks', () => {
    const nothing = { deleted: 0, compared: 0, differing: 0, settled: 0 };
    const some = { deleted: 3, compared: 2, differing: 1, settled: 1 };
    const failed = (name: string) => ({ name, failures: 2, retry_at_ms: 0, reason: 'A reason.' });
    expect(maintenanceDetails(nothing, 0, [])).toBe('Since the previous round: nothing to do');
    expect(maintenanceDetails(some, 1, [failed('a')])).toBe(
      'Since the previous round: deleted 3 objects; compared 2 intervals, 1 exported again; settled 1 interval; 1 task in progress; 1 task delayed after failures\n\n' +
        '- a failed 2 times, next attempt 1970-01-01T00:00:00.000Z: A reason.',
    );
    const many = Array.from({ length: 7 }, (_, each) => failed(`task ${each}`));
    expect(maintenanceDetails(nothing, 0, many)).toMatch(/- task 4 failed.*\n- and 2 more$/);
  });
});
