import { describe, expect, it } from '@jest/globals';
import type { SchedulePiece } from '../../src/domain/intervals.ts';
import { mayShareIntervals } from '../../src/domain/shared_intervals.ts';

const piece = (interval: string, effective_from: string | null = null): SchedulePiece => ({
  interval,
  timezone: 'UTC',
  offset_hour: 0,
  offset_day: 0,
  effective_from,
});
const noon = '2026-11-01T12:00:00.000Z';
const late = '2026-11-01T23:00:00.000Z';

describe('two schedules', () => {
  it.each([
    ['of different lengths', [piece('hour')], [piece('day')], false],
    ['of one length by two names', [piece('hour')], [piece('every 60 minutes')], true],
    ['that had one length once', [piece('hour'), piece('day', noon)], [piece('hour')], true],
    [
      'of one length one after the other',
      [piece('hour'), piece('day', noon)],
      [piece('day'), piece('hour', noon)],
      false,
    ],
    [
      'of which one bridges by an interval of the other',
      [piece('every 5 minutes'), piece('day', late)],
      [piece('hour')],
      true,
    ],
    [
      'of which one bridges by another interval',
      [piece('every 5 minutes'), piece('day', noon)],
      [piece('hour')],
      false,
    ],
  ])('%s', (_, one, other, expected) => {
    expect(mayShareIntervals(one, other)).toBe(expected);
    expect(mayShareIntervals(other, one)).toBe(expected);
  });
});
