import { describe, expect, it } from '@jest/globals';
import {
  formatBytes,
  formatCount,
  formatDuration,
  formatInterval,
  formatMoment,
  formatQuantity,
  formatRelative,
  formatShortCount,
  momentOfClocks,
  namesMoment,
  toClocks,
  withLocalTimes,
} from '../../src/console/formatting/format.ts';

describe('formatBytes', () => {
  it.each([
    [null, '–'],
    [0, '0 B'],
    [999, '999 B'],
    [1_000, '1.00 kB'],
    [12_345, '12.3 kB'],
    [999_499, '999 kB'],
    [999_500, '1.00 MB'],
    [1.5e15, '1.50 PB'],
    [2e18, '2000 PB'],
  ])('%p is %s', (bytes, text) => {
    expect(formatBytes(bytes)).toBe(text);
  });
});

describe('counts', () => {
  it('have separators, or a unit where space is little', () => {
    expect([formatCount(1_234_567), formatCount(null)]).toEqual(['1,234,567', '–']);
    expect([formatShortCount(1_234_567), formatShortCount(42)]).toEqual(['1.2M', '42']);
    expect([formatQuantity(1, 'row'), formatQuantity(2_000, 'row')]).toEqual(['1 row', '2,000 rows']);
  });
});

describe('formatDuration', () => {
  it.each([
    [undefined, '–'],
    [0, '0 s'],
    [0.0004, '1 ms'],
    [0.25, '250 ms'],
    [1.5, '1.5 s'],
    [45, '45 s'],
    [59.6, '1 min'],
    [3_600, '1 h'],
    [7_500, '2 h 5 min'],
    [86_405, '1 d'],
    [90_000, '1 d 1 h'],
    [-45, '−45 s'],
  ])('%p is %s', (seconds, text) => {
    expect(formatDuration(seconds)).toBe(text);
  });
});

describe('a time of a field', () => {
  it.each([
    ['2026-11-22T10:00', 'UTC', '2026-11-22T10:00:00.000Z'],
    ['2026-11-22T10:00:30', 'Asia/Tokyo', '2026-11-22T01:00:30.000Z'],
    ['2026-07-01T10:00', 'America/New_York', '2026-07-01T14:00:00.000Z'],
    ['2026-10-25T02:30', 'Europe/Berlin', '2026-10-25T00:30:00.000Z'],
    ['2026-03-29T02:30', 'Europe/Berlin', '2026-03-29T01:30:00.000Z'],
    ['', 'UTC', undefined],
  ])('%s in %s is the moment %s', (time, timezone, moment) => {
    expect(momentOfClocks(time, timezone)).toBe(moment);
  });

  it('is the moment as clocks show it', () => {
    expect(toClocks('2026-11-22T20:00:30Z', 'Asia/Tokyo')).toBe('2026-11-23T05:00');
    expect([toClocks(null, 'UTC'), toClocks('nonsense', 'UTC')]).toEqual(['', '']);
  });
});

describe('times', () => {
  it('are shown in the time zone of the project', () => {
    const moment = '2026-11-22T23:05:09Z';
    expect(formatMoment(moment, 'UTC')).toBe('2026-11-22 23:05:09');
    expect(formatMoment(moment, 'Asia/Tokyo', { seconds: false })).toBe('2026-11-23 08:05');
    expect(formatMoment('nonsense', 'UTC')).toBe('–');
  });

  it('have the name of the zone in messages', () => {
    const message = 'Of 2026-11-22T20:00:00.000Z, since 2026-11-22 20:00:05 UTC.';
    expect(withLocalTimes(message, 'Asia/Tokyo')).toBe(
      'Of 2026-11-23 05:00 Asia/Tokyo, since 2026-11-23 05:00:05 Asia/Tokyo.',
    );
  });

  it('are recognized in messages', () => {
    const message = 'It does not respond, since 2026-11-22 20:00:05 UTC.';
    expect(namesMoment(message, '2026-11-22T20:00:05.123Z')).toBe(true);
    expect(namesMoment(message, '2026-11-22T20:00:06.000Z')).toBe(false);
  });

  it.each([
    ['2026-11-22T20:00:00Z', '2026-11-22T21:00:00Z', '2026-11-22 20:00 – 21:00'],
    ['2026-11-22T23:00:00Z', '2026-11-23T00:00:00Z', '2026-11-22 23:00 – 2026-11-23 00:00'],
    ['2026-11-22T00:00:00Z', '2026-11-23T00:00:00Z', '2026-11-22'],
    ['2026-11-01T00:00:00Z', '2026-12-01T00:00:00Z', '2026-11-01 – 2026-12-01'],
  ])('an interval from %s to %s is %s', (start, end, text) => {
    expect(formatInterval(start, end, 'UTC')).toBe(text);
  });

  it('names the times of an interval in which the clocks change', () => {
    const at = (hour: number) => new Date(Date.UTC(2026, 10, 1, hour)).toISOString();
    expect(formatInterval(at(5), at(6), 'America/New_York')).toBe('2026-11-01 01:00 EDT – 01:00 EST');
    expect(formatInterval(at(6), at(7), 'America/New_York')).toBe('2026-11-01 01:00 – 02:00');
    expect(formatInterval(at(4), at(28), 'America/New_York')).toBe('2026-11-01 00:00 EDT – 23:00 EST');
    expect(formatInterval(at(4), at(29), 'America/New_York')).toBe('2026-11-01');
  });

  it.each([
    [2_000, 'now'],
    [-90_000, '1 min. ago'],
    [-7_200_000, '2 hr. ago'],
    [300_000, 'in 5 min.'],
    [-172_800_000, '2 days ago'],
  ])('%p ms from now is %s', (difference, text) => {
    const now = Date.parse('2026-11-22T20:00:00Z');
    expect(formatRelative(now + difference, now)).toBe(text);
  });
});
