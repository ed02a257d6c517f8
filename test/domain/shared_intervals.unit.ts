import { describe, expect, it } from '@jest/globals';
import { canShareIntervals, type ScheduleRevision } from '../../src/domain/intervals.ts';

const revision = (interval: string, effective_from: string | null = null): ScheduleRevision => ({
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
    ['of different lengths', [revision('hour')], [revision('day')], false],
    ['of one length with two names', [revision('hour')], [revision('every 60 minutes')], true],
    ['that once had the same length', [revision('hour'), revision('day', noon)], [revision('hour')], true],
    [
      'of the same length at different times',
      [revision('hour'), revision('day', noon)],
      [revision('day'), revision('hour', noon)],
      false,
    ],
    [
      'with a bridging interval that equals one of the other',
      [revision('every 5 minutes'), revision('day', late)],
      [revision('hour')],
      true,
    ],
    [
      'with a bridging interval that differs',
      [revision('every 5 minutes'), revision('day', noon)],
      [revision('hour')],
      false,
    ],
  ])('%s', (_, one, other, expected) => {
    expect(canShareIntervals(one, other)).toBe(expected);
    expect(canShareIntervals(other, one)).toBe(expected);
  });
});
