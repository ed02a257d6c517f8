import { describe, expect, it } from '@jest/globals';
import { isFailureDue, withFailure } from '../../src/domain/run_state.ts';

const at = (minute: number) => new Date(Date.UTC(2026, 10, 1, 10, minute));
const failures = withFailure({}, 'SlowDown', at(0).toISOString());

describe('a failed attempt', () => {
  it.each([
    ['of a type for the first time', 'InvalidPart', 1, true, true],
    ['minutes after another of its type', 'SlowDown', 4, true, false],
    ['some minutes later', 'SlowDown', 5, true, true],
    ['after progress', 'SlowDown', 1, false, true],
  ])('is recorded or not %s', (_, type, minute, isShown, due) => {
    expect(isFailureDue(failures, type, { isShown, now: at(minute) })).toBe(due);
  });

  it('is counted by type', () => {
    expect(withFailure(failures, 'SlowDown', at(6).toISOString())).toEqual({
      SlowDown: { recorded: 2, recorded_at: at(6).toISOString() },
    });
  });
});
