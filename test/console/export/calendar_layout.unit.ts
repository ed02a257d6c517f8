import { describe, expect, it } from '@jest/globals';
import {
  layOutCalendar,
  spanMsOf,
  type TimelineEntry,
  withMissing,
} from '../../../src/console/pages/export/calendar_layout.ts';

const hourMs = 3_600_000;

/** An entry of the timeline from `start`, `hours` long. */
const entryOf = (start: string, hours: number, more: Partial<TimelineEntry> = {}): TimelineEntry => ({
  data_interval_start: start,
  data_interval_end: new Date(Date.parse(start) + hours * hourMs).toISOString(),
  intervals: 1,
  status: 'exported',
  reason: null,
  generation: 1,
  rows: 3,
  bytes: 90,
  landed_at: null,
  ...more,
});

/** `count` entries of `hours` each, from `start`. */
const entriesFrom = (start: string, hours: number, count: number): TimelineEntry[] =>
  Array.from({ length: count }, (_, index) =>
    entryOf(new Date(Date.parse(start) + index * hours * hourMs).toISOString(), hours),
  );

/** The columns of each row, by its label. */
const columnsOf = (...parameters: Parameters<typeof layOutCalendar>) =>
  Object.fromEntries(
    layOutCalendar(...parameters).rows.map(({ label, cells }) => [label, cells.map(({ column }) => column)]),
  );

describe('the calendar', () => {
  it('has a row for each day and a column for each hour of hourly exports', () => {
    const layout = columnsOf(entriesFrom('2026-11-22T22:00:00.000Z', 1, 4), 'hour', 'UTC');
    expect(layout).toEqual({ '2026-11-22': [22, 23], '2026-11-23': [0, 1] });
  });

  it('follows the clocks of the time zone', () => {
    const layout = columnsOf(entriesFrom('2026-11-22T22:00:00.000Z', 1, 3), 'hour', 'Asia/Tokyo');
    expect(layout).toEqual({ '2026-11-23': [7, 8, 9] });
  });

  it('has a column more where clocks are set back', () => {
    const entries = entriesFrom('2026-10-24T22:00:00.000Z', 1, 25);
    const layout = layOutCalendar(entries, 'hour', 'Europe/Berlin');
    expect(layout.columns).toBe(25);
    expect(layout.rows).toHaveLength(1);
    expect(layout.rows[0]?.cells.map(({ column }) => column)).toEqual(
      Array.from({ length: 25 }, (_, index) => index),
    );
  });

  it('has a row for each hour of exports of minutes', () => {
    const layout = columnsOf(entriesFrom('2026-11-22T10:40:00.000Z', 1 / 6, 3), 'every 10 minutes', 'UTC');
    expect(layout).toEqual({ '2026-11-22 10:00': [4, 5], '2026-11-22 11:00': [0] });
  });

  it('has a row for each week of daily exports, from Monday', () => {
    const layout = columnsOf(entriesFrom('2026-11-21T00:00:00.000Z', 24, 3), 'day', 'UTC');
    expect(layout).toEqual({ 'week of 2026-11-16': [5, 6], 'week of 2026-11-23': [0] });
  });

  it('has a row for each year of monthly exports', () => {
    const entries = [
      entryOf('2025-12-01T00:00:00.000Z', 31 * 24),
      entryOf('2026-01-01T00:00:00.000Z', 31 * 24),
    ];
    expect(columnsOf(entries, 'month', 'UTC')).toEqual({ 2025: [11], 2026: [0] });
  });

  it('has a row for each year of weekly exports', () => {
    const entries = [entryOf('2025-12-28T00:00:00.000Z', 168), entryOf('2026-01-04T00:00:00.000Z', 168)];
    expect(columnsOf(entries, 'week', 'UTC')).toEqual({ 2025: [51], 2026: [0] });
  });

  it('shows each interval of a range without runs', () => {
    const range = entryOf('2026-11-22T22:00:00.000Z', 4, { intervals: 4, status: 'paused' });
    const layout = layOutCalendar([range], 'hour', 'UTC');
    expect(
      layout.rows.map(({ label, cells }) => [label, cells.map(({ start }) => start.slice(11, 13))]),
    ).toEqual([
      ['2026-11-22', ['22', '23']],
      ['2026-11-23', ['00', '01']],
    ]);
  });

  it('gives an interval of another definition as many columns as it is long', () => {
    const entries = [entryOf('2026-11-22T00:00:00.000Z', 15), entryOf('2026-11-22T15:00:00.000Z', 1)];
    const [row] = layOutCalendar(entries, 'hour', 'UTC').rows;
    expect(row?.cells.map(({ column, columns }) => [column, columns])).toEqual([
      [0, 15],
      [15, 1],
    ]);
  });

  it('never gives an interval more columns than its row has', () => {
    const [row] = layOutCalendar([entryOf('2026-11-22T20:00:00.000Z', 48)], 'hour', 'UTC').rows;
    expect(row?.cells.map(({ column, columns }) => [column, columns])).toEqual([[20, 4]]);
  });

  it('shows at most as many intervals as one request returns', () => {
    for (const [interval, minutes] of [
      ['every 1 minutes', 1],
      ['every 5 minutes', 5],
      ['hour', 60],
      ['day', 1_440],
      ['week', 10_080],
    ] as const)
      expect(spanMsOf(interval) / (minutes * 60_000)).toBeLessThanOrEqual(1_000);
  });
});

it('shows what is missing between the entries, as far as the calendar goes', () => {
  const first = entryOf('2026-11-22T00:00:00.000Z', 1);
  const last = entryOf('2026-11-22T05:00:00.000Z', 1);
  const hole = {
    start: '2026-11-22T01:00:00.000Z',
    end: '2026-11-22T05:00:00.000Z',
    kind: 'missing' as const,
    intervals: 4,
  };
  const shown = (after: string, before: string) =>
    withMissing([first, last], [hole], `2026-11-22T${after}:00.000Z`, `2026-11-22T${before}:00.000Z`).map(
      ({ data_interval_start, intervals, status }) =>
        `${data_interval_start.slice(11, 13)} ${status} ${intervals}`,
    );
  expect(shown('00:00', '06:00')).toEqual(['00 exported 1', '01 missing 4', '05 exported 1']);
  expect(shown('02:30', '04:00')).toEqual(['00 exported 1', '02 missing 2', '05 exported 1']);
  expect(shown('05:00', '06:00')).toEqual(['00 exported 1', '05 exported 1']);
});

it('shows as due what a backfill has not begun, beside what it runs', () => {
  const first = entryOf('2026-11-22T00:00:00.000Z', 1);
  const running = { ...entryOf('2026-11-22T02:00:00.000Z', 1), status: 'running' as const };
  const owed = {
    start: '2026-11-22T01:00:00.000Z',
    end: '2026-11-22T04:00:00.000Z',
    kind: 'owed' as const,
    intervals: 3,
  };
  const shown = withMissing([first, running], [owed], '2026-11-22T00:00:00.000Z', '2026-11-22T06:00:00.000Z');
  expect(
    shown.map((one) => `${one.data_interval_start.slice(11, 13)} ${one.status} ${one.intervals}`),
  ).toEqual(['00 exported 1', '01 due 1', '02 running 1', '03 due 1']);
});
