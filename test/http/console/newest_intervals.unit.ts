import { describe, expect, it } from '@jest/globals';
import type { ScheduleRevision } from '../../../src/domain/intervals.ts';
import type { UndecidedRange } from '../../../src/domain/batch_export.ts';
import type { IntervalStatus } from '../../../src/http/intervals/schema.ts';
import { newestIntervals } from '../../../src/http/console/pages/overview.ts';

const hourly: ScheduleRevision = {
  interval: 'hour',
  timezone: 'UTC',
  offset_hour: 0,
  offset_day: 0,
  effective_from: null,
};
const at = (hour: number): string => new Date(Date.UTC(2026, 10, 22, hour)).toISOString();
const entry = (status: IntervalStatus, start: number, end = start + 1) => ({
  start: Date.parse(at(start)),
  end: Date.parse(at(end)),
  status,
});
const open = (start: number, end: number, reason: UndecidedRange['reason'] = null): UndecidedRange => ({
  start: at(start),
  end: at(end),
  reason,
});

describe('newestIntervals', () => {
  const newest = (
    stored: Parameters<typeof newestIntervals>[1],
    undecided: readonly UndecidedRange[] = [],
    max = 48,
    revisions = [hourly],
  ) =>
    newestIntervals(revisions, stored, undecided, max).map(
      ({ start, end, status }) => `${new Date(start).getUTCHours()}-${new Date(end).getUTCHours()} ${status}`,
    );

  it('are those of the ledger, oldest first', () => {
    expect(newest([entry('running', 2), entry('exported', 1), entry('failed', 0)])).toEqual([
      '0-1 failed',
      '1-2 exported',
      '2-3 running',
    ]);
  });

  it('splits skipped ranges into intervals', () => {
    expect(newest([entry('exported', 3), entry('paused', 0, 3)])).toEqual([
      '0-1 paused',
      '1-2 paused',
      '2-3 paused',
      '3-4 exported',
    ]);
  });

  it('adds what the schedule has recorded nothing about yet', () => {
    expect(
      newest([entry('exported', 0)], [open(1, 3), open(3, 4, 'paused'), open(4, 5, 'after end_at')]),
    ).toEqual(['0-1 exported', '1-2 due', '2-3 due', '3-4 paused', '4-5 excluded']);
  });

  it('takes an interval that a backfill exported ahead of the schedule from the ledger', () => {
    expect(newest([entry('exported', 2), entry('exported', 0)], [open(1, 4)])).toEqual([
      '0-1 exported',
      '1-2 due',
      '2-3 exported',
      '3-4 due',
    ]);
  });

  it('shows a hole between two of them as missing, as far as there is room', () => {
    const stored = [entry('exported', 9), entry('exported', 8), entry('exported', 5)];
    const hole = ['6-7 missing', '7-8 missing', '8-9 exported', '9-10 exported'];
    expect(newest(stored)).toEqual(['5-6 exported', ...hole]);
    expect(newest(stored, [], 4)).toEqual(hole);
    expect(newest(stored, [], 3)).toEqual(hole.slice(1));
  });

  it('shows no hole of years further than it is asked to', () => {
    const old = { ...entry('exported', 0), start: Date.UTC(2000, 0), end: Date.UTC(2000, 0, 1, 1) };
    expect(newest([entry('exported', 3), old], [], 3)).toEqual([
      '1-2 missing',
      '2-3 missing',
      '3-4 exported',
    ]);
  });

  it('has at most so many, also of a range of years', () => {
    const years = { start: Date.UTC(2000, 0), end: Date.parse(at(3)), status: 'paused' as const };
    expect(newest([entry('exported', 3), years], [], 3)).toEqual([
      '1-2 paused',
      '2-3 paused',
      '3-4 exported',
    ]);
    expect(newest([], [{ start: new Date(0).toISOString(), end: at(3), reason: 'paused' }], 2)).toEqual([
      '1-2 paused',
      '2-3 paused',
    ]);
  });

  it('follows a change of the schedule', () => {
    const quarterly = { ...hourly, interval: 'every 15 minutes', effective_from: at(2) };
    const intervals = newestIntervals([hourly, quarterly], [entry('exported', 1)], [open(2, 3)], 48);
    expect(intervals.map(({ start, end }) => (end - start) / 60_000)).toEqual([60, 15, 15, 15, 15]);
  });

  it('is empty before the first interval has ended', () => {
    expect(newest([])).toEqual([]);
  });
});
