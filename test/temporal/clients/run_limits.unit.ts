import { describe, expect, it } from '@jest/globals';
import { readSettings } from '../../../src/config/settings.ts';
import { startableRun } from '../startable_run.ts';
import { runInput, runTimeoutMs, startDelayOf } from '../../../src/temporal/clients/run_input.ts';

describe('the start of a run', () => {
  const run = startableRun();
  const settingsWith = (more: Record<string, string> = {}) =>
    readSettings({ DATABASE_URL: 'unused', ...more });
  const hour = 3_600_000;

  it('is delayed by the whole settle delay while that of its interval is not over', () => {
    const endedAt = Date.parse(run.data_interval_end);
    const delayAt = (afterMs: number): number => startDelayOf(run, settingsWith(), endedAt + afterMs);
    expect([0, 29_999].map(delayAt)).toEqual([30_000, 30_000]);
    expect([30_000, hour].map(delayAt)).toEqual([0, 0]);
    // A clock that is late by hours delays it no longer than others.
    expect(delayAt(-6 * hour)).toBe(30_000);
    expect(startDelayOf(run, settingsWith({ EXPORTD_SETTLE_DELAY: '0s' }), endedAt + 1)).toBe(0);
  });

  describe('the limits of a run', () => {
    it.each([
      ['every 5 minutes', hour / 3],
      ['every 30 minutes', hour / 2],
      ['hour', 6 * hour],
      ['day', 24 * hour],
      ['week', 72 * hour],
      ['month', 72 * hour],
    ])('give a run of %s %d ms', (interval, expected) => {
      const sameTime = {
        data_interval_start: run.data_interval_start,
        data_interval_end: run.data_interval_start,
      };
      expect(runTimeoutMs({ ...sameTime, interval }, settingsWith())).toBe(expected);
    });

    it.each([
      ['a day of 23 hours', '2026-11-01T00:00:00.000Z', '2026-11-01T23:00:00.000Z', 24 * hour],
      ['a bridge of 14 hours', '2026-11-01T10:00:00.000Z', '2026-11-02T00:00:00.000Z', 6 * hour],
      ['a month', '2026-10-01T00:00:00.000Z', '2026-11-01T00:00:00.000Z', 72 * hour],
    ])('fit %s from before the interval of the export was shortened', (_, start, end, expected) => {
      const earlier = { interval: 'every 5 minutes', data_interval_start: start, data_interval_end: end };
      expect(runTimeoutMs(earlier, settingsWith())).toBe(expected);
    });

    it('give activities at most half of the run', () => {
      expect(runInput(run, settingsWith()).limits.retry_budget_ms).toBe(3 * hour);
      const settings = settingsWith({
        EXPORTD_RUN_TIMEOUT: '4s',
        EXPORTD_ACTIVITY_SCHEDULE_TO_CLOSE_TIMEOUT: '3s',
      });
      expect(runInput(run, settings).limits.retry_budget_ms).toBe(2_000);
    });

    it('wait for open transactions at most for the length of the interval', () => {
      const short = { ...run, interval: 'every 5 minutes', data_interval_end: '2026-11-01T10:05:00.000Z' };
      expect(runInput(short, settingsWith()).limits.settle_timeout_ms).toBe(300_000);
      expect(runInput(run, settingsWith()).limits.settle_timeout_ms).toBe(600_000);
    });
  });
});
