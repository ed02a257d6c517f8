import { describe, expect, it } from '@jest/globals';
import type { ScheduleRevision } from '../../src/domain/intervals.ts';
import { canShareIntervals } from '../../src/domain/shared_intervals.ts';

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
    ['of one length by two names', [revision('hour')], [revision('every 60 minutes')], true],
    ['that had one length once', [revision('hour'), revision('day', noon)], [revision('hour')], true],
    [
      'of one length one after the other',
      [revision('hour'), revision('day', noon)],
      [revision('day'), revision('hour', noon)],
      false,
    ],
    [
      'of which one bridges by an interval of the other',
      [revision('every 5 minutes'), revision('day', late)],
      [revision('hour')],
      true,
    ],
    [
      'of which one bridges by another interval',
      [revision('every 5 minutes'), revision('day', noon)],
      [revision('hour')],
      false,
    ],
  ])('%s', (_, one, other, expected) => {
    expect(canShareIntervals(one, other)).toBe(expected);
    expect(canShareIntervals(other, one)).toBe(expected);
  });
});
