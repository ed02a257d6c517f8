import { describe, expect, it } from '@jest/globals';
import { lagLines } from '../../src/cli/export_tables.ts';

const lag = {
  intervals: 1,
  seconds: 3600,
  last_completed_interval_end: '2026-11-01T10:00:00.000Z',
  gaps: [],
};

describe('the lag of an export in the CLI', () => {
  it('is one line without gaps', () => {
    expect(lagLines(lag)).toEqual([
      'Lag: 1 interval, 1 h. Newest completed interval: 2026-11-01T10:00:00.000Z.',
    ]);
  });

  it('lists the gaps and the runs to retry', () => {
    const gap = {
      data_interval_start: '2026-11-01T10:00:00.000Z',
      data_interval_end: '2026-11-01T11:00:00.000Z',
      run_id: 'the-run',
      status: 'TimedOut',
    } as const;
    const [, heading, , line] = lagLines({ ...lag, gaps: [gap] });
    expect(heading).toMatch(/retry/);
    expect(line).toMatch(/^2026-11-01T10:00:00.000Z +2026-11-01T11:00:00.000Z +Timedout +the-run$/);
  });

  it('says so when the server cannot read the schedule', () => {
    expect(lagLines(null)).toEqual([expect.stringMatching(/^Lag: unknown/)]);
  });
});
