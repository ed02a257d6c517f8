import { describe, expect, it } from '@jest/globals';
import { formatDuration, statusRows } from '../../src/cli/export_tables.ts';

const lag = { intervals: 0, seconds: 0, last_completed_interval_end: '2026-11-01T10:00:00.000Z', gaps: [] };
const gap = { data_interval_start: '', data_interval_end: '', run_id: 'run', status: 'Failed' };
const batchExport = (name: string, more: object = {}) => ({
  id: name,
  name,
  model: 'events',
  interval: 'hour',
  paused: false,
  latest_runs: [],
  lag,
  ...more,
});

describe('the status of exports', () => {
  it('lists first what needs attention', () => {
    const rows = statusRows([
      batchExport('fine'),
      batchExport('paused', { paused: true }),
      batchExport('unknown', { lag: null }),
      batchExport('behind', { lag: { ...lag, intervals: 3, seconds: 10_800 } }),
      batchExport('failing', { latest_runs: [{ status: 'Failed', latest_error: 'AccessDenied: no' }] }),
      batchExport('gaps', { lag: { ...lag, intervals: 1, seconds: 3_600, gaps: [gap] } }),
    ]);
    expect(rows.map(([state, , name, , , behind, , detail]) => [state, name, behind, detail])).toEqual([
      ['gaps', 'gaps', '1 h', expect.stringContaining('1 interval needs a retry')],
      ['failing', 'failing', 'none', 'AccessDenied: no'],
      ['behind', 'behind', '3 h', '3 intervals are not exported yet'],
      ['unknown', 'unknown', null, null],
      ['paused', 'paused', 'none', null],
      ['ok', 'fine', 'none', null],
    ]);
  });
});

describe('a duration', () => {
  it.each([
    [0, '0 s'],
    [59.6, '1 min'],
    [3_600, '1 h'],
    [7_500, '2 h 5 min'],
    [86_400 + 59, '1 d'],
    [90_061, '1 d 1 h'],
  ])('of %s s is %s', (seconds, text) => {
    expect(formatDuration(seconds)).toBe(text);
  });
});
