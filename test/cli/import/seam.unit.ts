import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { DateTime } from 'luxon';
import { findSeam, type OldSchedule } from '../../../src/cli/import/seam.ts';
import {
  firstIntervalEndingFrom,
  nextBoundary,
  nominalLengthMs,
  type ScheduleDefinition,
} from '../../../src/domain/intervals.ts';
import { posthogIntervals } from './posthog_rules.ts';

const open: OldSchedule = { paused: false, start_at: null, end_at: null, runs: [] };
const utc = (interval: string): ScheduleDefinition => ({
  interval,
  timezone: 'UTC',
  offset_hour: 0,
  offset_day: 0,
});

/** The intervals that exportd exports of `[from, until)` with these bounds. */
function exportdIntervals(
  definition: ScheduleDefinition,
  bounds: { readonly start_at: string; readonly end_at: string | null },
  until: Date,
) {
  const found = [];
  let { start, end } = firstIntervalEndingFrom([{ ...definition, effective_from: null }], bounds.start_at);
  while (Date.parse(end) <= Date.parse(bounds.end_at ?? until.toISOString())) {
    found.push({ start: Date.parse(start), end: Date.parse(end) });
    [start, end] = [end, nextBoundary(definition, new Date(end)).toISOString()];
  }
  return found;
}

const definitionArb = fc.oneof(
  fc.constantFrom('hour', 'every 5 minutes', 'every 15 minutes').map(utc),
  fc
    .record({
      interval: fc.constantFrom('day', 'week'),
      timezone: fc.constantFrom(
        'UTC',
        'America/New_York',
        'Europe/Berlin',
        'Asia/Kolkata',
        'Australia/Lord_Howe',
      ),
      offset_hour: fc.integer({ min: 0, max: 23 }),
      offset_day: fc.integer({ min: 0, max: 6 }),
    })
    .map((one) => ({ ...one, offset_day: one.interval === 'week' ? one.offset_day : 0 })),
);

describe('the seam', () => {
  it('is where the intervals of PostHog end and those of exportd begin, whatever the schedule', () => {
    fc.assert(
      fc.property(
        definitionArb,
        fc.date({ min: new Date('2026-01-01'), max: new Date('2026-12-31'), noInvalidDate: true }),
        fc.option(fc.double({ min: 0, max: 3, noNaN: true }), { nil: null }),
        (definition, from, endsAfter) => {
          const length = nominalLengthMs(definition.interval);
          const end_at =
            endsAfter === null ? null : new Date(from.getTime() + endsAfter * length).toISOString();
          const seam = findSeam(definition, { ...open, end_at }, from);
          const until = new Date(from.getTime() + 5 * length);
          const since = new Date(from.getTime() - 3 * length);
          const all = posthogIntervals({ ...definition, end_at }, since, until);
          // Without a seam, PostHog exports the only interval that is left.
          const rest = all.filter(({ end }) => end > from.getTime());
          expect(seam !== undefined || rest.length <= 1).toBe(true);
          fc.pre(seam !== undefined);
          const at = Date.parse(seam.first.start);
          expect(at).toBeGreaterThanOrEqual(from.getTime());
          const stopped = posthogIntervals({ ...definition, end_at: seam.first.start }, since, until);
          const last = stopped.at(-1);
          expect([last?.end, last?.start]).toEqual([at, Date.parse(seam.last.start)]);
          expect(seam.last.end).toBe(seam.first.start);
          const here = exportdIntervals(definition, { start_at: seam.start_at, end_at }, until);
          expect(here[0]).toEqual({ start: at, end: Date.parse(seam.first.end) });
          // Without DST both products have the same intervals here. With it, exportd has those that PostHog skips.
          const ends = new Set(here.map(({ end }) => end));
          const missing = all.filter(({ end, isRepeated }) => end > at && !isRepeated && !ends.has(end));
          expect(missing).toEqual([]);
          expect(seam.until === null || seam.until === new Date(here.at(-1)?.end ?? 0).toISOString()).toBe(
            true,
          );
        },
      ),
    );
  });

  it('of a paused export is where its completed runs end, whatever the time', () => {
    const runs = [
      { status: 'Failed', data_interval_end: '2026-11-02T05:00:00Z' },
      { status: 'Completed', data_interval_end: '2026-11-02T04:00:00Z' },
    ];
    expect(
      findSeam(utc('hour'), { ...open, paused: true, runs }, new Date('2026-11-20T00:30:00Z')),
    ).toMatchObject({
      first: { start: '2026-11-02T04:00:00.000Z' },
      start_at: '2026-11-02T05:00:00.000Z',
      stopsThere: false,
    });
  });

  it('is after every run of PostHog', () => {
    const runs = [{ status: 'Running', data_interval_end: '2026-11-02T05:00:00Z' }];
    expect(findSeam(utc('hour'), { ...open, runs }, new Date('2026-11-01T00:00:00Z'))).toMatchObject({
      first: { start: '2026-11-02T05:00:00.000Z' },
      stopsThere: true,
    });
  });

  it('is not before the start_at of the export', () => {
    const start_at = '2026-12-01T10:00:00Z';
    expect(findSeam(utc('hour'), { ...open, start_at }, new Date('2026-11-01T00:00:00Z'))).toMatchObject({
      first: { start: '2026-12-01T09:00:00.000Z', end: '2026-12-01T10:00:00.000Z' },
      start_at: '2026-12-01T10:00:00.000Z',
    });
  });

  it('leaves exportd the last interval alone', () => {
    const end_at = '2026-11-02T11:00:00Z';
    const from = new Date('2026-11-02T10:00:00Z');
    const seam = findSeam(utc('hour'), { ...open, end_at }, from);
    expect(seam?.first.end).toBe('2026-11-02T11:00:00.000Z');
    expect(Date.parse(seam?.start_at ?? '')).toBeLessThan(Date.parse(end_at));
    expect(findSeam(utc('hour'), { ...open, end_at }, new Date(from.getTime() + 1))).toBeUndefined();
  });

  it('is no time that DST skips, when PostHog has no run', () => {
    const newYork = { interval: 'day', timezone: 'America/New_York', offset_hour: 2, offset_day: 0 };
    const at = findSeam(newYork, open, new Date('2026-03-08T06:00:00Z'))?.first.start ?? '';
    expect(DateTime.fromISO(at, { zone: 'America/New_York' }).toISO()).toBe('2026-03-09T02:00:00.000-04:00');
  });
});
