import { describe, expect, it } from '@jest/globals';
import { putOffTasks } from '../../workflows/put_off.ts';
import { upkeepDetails } from '../../workflows/upkeep_details.ts';

const minute = 60_000;
const waits = () => ({ initial_ms: minute, maximum_ms: 60 * minute });

describe('tasks that are put off', () => {
  it('wait twice as long after each failure, up to the longest wait', () => {
    const tasks = putOffTasks([], waits);
    const lengths = Array.from({ length: 9 }, () => {
      tasks.add('a', 'A reason.', 0);
      return (tasks.all()[0]?.until_ms ?? 0) / minute;
    });
    expect(lengths).toEqual([1, 2, 4, 8, 16, 32, 60, 60, 60]);
    expect(tasks.waiting(60 * minute - 1)).toEqual(['a']);
    expect(tasks.waiting(60 * minute)).toEqual([]);
    expect(tasks.failuresOf('a')).toBe(9);
  });

  it('are forgotten when they succeed', () => {
    const tasks = putOffTasks([{ name: 'a', failures: 3, until_ms: 5, reason: 'A reason.' }], waits);
    expect(tasks.waiting(4)).toEqual(['a']);
    tasks.remove('a');
    expect(tasks.all()).toEqual([]);
    expect(tasks.failuresOf('a')).toBe(0);
  });

  it('are a bounded number: those are forgotten that would be tried soonest', () => {
    const tasks = putOffTasks([], waits);
    for (let each = 0; each < 600; each += 1) tasks.add(`task ${each}`, 'A reason.', each);
    expect(tasks.all()).toHaveLength(500);
    expect(tasks.all()[0]?.name).toBe('task 100');
  });
});

describe('the status line of the upkeep', () => {
  it('says what was done and what keeps failing', () => {
    const nothing = { removed: 0, counted: 0, differing: 0 };
    const some = { removed: 3, counted: 2, differing: 1 };
    const failed = (name: string) => ({ name, failures: 2, until_ms: 0, reason: 'A reason.' });
    expect(upkeepDetails(nothing, 0, [])).toBe('Since the last look: nothing to do');
    expect(upkeepDetails(some, 1, [failed('a')])).toBe(
      'Since the last look: removed 3 objects; counted 2 intervals again, 1 with late rows; 1 exports under way; 1 put off\n' +
        '- a failed 2 times, next try 1970-01-01T00:00:00.000Z: A reason.',
    );
    const many = Array.from({ length: 7 }, (_, each) => failed(`task ${each}`));
    expect(upkeepDetails(nothing, 0, many)).toMatch(/- task 4 failed.*\n- and 2 more$/);
  });
});
