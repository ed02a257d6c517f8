import { describe, expect, it } from '@jest/globals';
import { newestInterval, newestIntervals } from '../../../src/http/previews/previews.ts';

const schedule = (interval: string, timezone = 'UTC') => ({
  interval,
  timezone,
  offset_hour: 0,
  offset_day: 0,
});
const now = new Date('2026-11-23T10:20:00Z');

describe('the newest interval', () => {
  it.each([
    ['hour', 'UTC', '2026-11-23T09:00:00.000Z', '2026-11-23T10:00:00.000Z'],
    ['every 5 minutes', 'UTC', '2026-11-23T10:15:00.000Z', '2026-11-23T10:20:00.000Z'],
    ['day', 'Europe/Berlin', '2026-11-21T23:00:00.000Z', '2026-11-22T23:00:00.000Z'],
    ['month', 'UTC', '2026-10-01T00:00:00.000Z', '2026-11-01T00:00:00.000Z'],
  ])('of %s in %s has ended', (interval, timezone, start, end) => {
    expect(newestInterval(schedule(interval, timezone), now)).toEqual({ start, end });
  });
});

describe('the newest intervals', () => {
  it('are those of a day', () => {
    expect(newestIntervals(schedule('hour'), now)).toEqual({
      range: { start: '2026-11-22T10:00:00.000Z', end: '2026-11-23T10:00:00.000Z' },
      intervals: 24,
    });
  });

  it('are one that is longer than a day', () => {
    expect(newestIntervals(schedule('week'), now)).toEqual({
      range: { start: '2026-11-15T00:00:00.000Z', end: '2026-11-22T00:00:00.000Z' },
      intervals: 1,
    });
  });
});
