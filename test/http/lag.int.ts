import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { endRun, type RunOutcome } from '../../src/decisions/run_outcomes.ts';
import { createRunRecorder } from '../../src/decisions/run_recorder.ts';
import { rebuild } from '../../src/projections/registry.ts';
import { quickPolicies } from '../decisions/commander.ts';
import { minuteAgo, withinOneMinute } from '../setup/minutes.ts';
import { createLaggingExport } from './lagging_export.ts';
import { openApiHarness, type ApiHarness } from './api_harness.ts';
import { fingerprintOf } from '../domain/fingerprints.ts';

interface Lag {
  readonly intervals: number;
  readonly seconds: number;
  readonly last_completed_interval_end: string | null;
  readonly gaps: readonly Record<string, unknown>[];
}
interface Run {
  readonly id: string;
  readonly data_interval_start: string;
  readonly data_interval_end: string;
}

let api: ApiHarness;
beforeAll(async () => {
  api = await openApiHarness({ EXPORTD_BACKFILL_CONCURRENCY: '200' });
});
afterAll(() => api.close());

const lagOf = async (id: string): Promise<Lag> =>
  (await api.call('GET', `batch_exports/${id}`)).body.lag as Lag;

/** The export's lag, and the number of minutes that ended since `start`. */
async function lagSince(id: string, start: Date): Promise<{ lag: Lag; ended: number }> {
  const { result: observed, minute } = await withinOneMinute(() => lagOf(id));
  return { lag: observed, ended: (minute.getTime() - start.getTime()) / 60_000 };
}

/** The runs of an export, oldest interval first. */
async function runsOf(id: string): Promise<Run[]> {
  const { body } = await api.call('GET', `batch_exports/${id}/runs/?ordering=data_interval_start&limit=1000`);
  return body.results as Run[];
}

async function complete({ id }: Run): Promise<void> {
  const recorder = createRunRecorder(api.journal);
  await recorder.recordCount(id, {
    records_total_count: 0,
    fingerprint: fingerprintOf(0),
    settled: true,
    split_keys: [],
  });
  const { generation } = await recorder.reserveGeneration(id);
  await recorder.finishExport(id, generation, {
    source_rows: 0,
    fingerprint: fingerprintOf(0),
    encoder: 'none',
  });
  await recorder.startPublish(id, generation);
  await recorder.complete(id, generation, 'manifest');
}

const end = (run: Run, status: RunOutcome, settings: Record<string, string> = {}) =>
  endRun(api.journal, quickPolicies(settings), run.id, {
    status,
    latest_error: 'Test: it was ended.',
  });

const gapOf = (run: Run | undefined, status: string) => ({
  data_interval_start: run?.data_interval_start,
  data_interval_end: run?.data_interval_end,
  run_id: run?.id,
  status,
});

describe('the lag of an export', () => {
  it('counts ended intervals, with or without a run, until they have a Completed run', async () => {
    const start = minuteAgo(5);
    const id = await createLaggingExport(api, start);
    const beforeRuns = await lagSince(id, start);
    expect(beforeRuns.lag).toEqual({
      intervals: beforeRuns.ended,
      seconds: beforeRuns.ended * 60,
      last_completed_interval_end: null,
      gaps: [],
    });

    await api.advanceSchedule(id);
    const [first, second] = await runsOf(id);
    const withRuns = await lagSince(id, start);
    expect(withRuns.lag.intervals).toBe(withRuns.ended);

    if (first) await complete(first);
    if (second) await end(second, 'Failed');
    const failed = await lagSince(id, start);
    expect(failed.lag).toEqual({
      intervals: failed.ended - 1,
      seconds: (failed.ended - 1) * 60,
      last_completed_interval_end: first?.data_interval_end,
      gaps: [gapOf(second, 'Failed')],
    });
  });

  it('excludes what start_at and end_at exclude, before and after the schedule handled it', async () => {
    const bounds = { start_at: minuteAgo(6).toISOString(), end_at: minuteAgo(3).toISOString() };
    const id = await createLaggingExport(api, minuteAgo(9), bounds);
    expect(await lagOf(id)).toMatchObject({ intervals: 4, seconds: 240 });
    await api.advanceSchedule(id);
    expect(await lagOf(id)).toMatchObject({ intervals: 4, seconds: 240 });
  });

  it('keeps intervals that ended before a pause, minus those that a backfill completes', async () => {
    const id = await createLaggingExport(api, minuteAgo(4), { paused: true });
    const before = (await lagOf(id)).intervals;
    expect(before).toBeGreaterThanOrEqual(4);
    const range = { start_at: minuteAgo(4), end_at: minuteAgo(3) };
    await api.call('POST', `batch_exports/${id}/backfill`, range);
    const [run] = await runsOf(id);
    expect((await lagOf(id)).intervals).toBe(before);
    if (run) await complete(run);
    expect(await lagOf(id)).toMatchObject({ intervals: before - 1, seconds: (before - 1) * 60 });
  });

  it('counts an interval for which the schedule adopts the run of a backfill', async () => {
    const start = minuteAgo(2);
    // Intervals that end during the pause are excluded.
    const { result: observed } = await withinOneMinute(async () => {
      const id = await createLaggingExport(api, start, { paused: true });
      await api.call('POST', `batch_exports/${id}/backfill`, { start_at: start, end_at: minuteAgo(1) });
      const [joined] = await runsOf(id);
      await api.call('POST', `batch_exports/${id}/unpause`);
      return { id, joined };
    });
    const { id, joined } = observed;
    await api.advanceSchedule(id);
    if (joined) await end(joined, 'Failed');
    const { lag, ended } = await lagSince(id, start);
    expect(lag).toMatchObject({ intervals: ended, gaps: [gapOf(joined, 'Failed')] });
  });

  it('includes the gaps of a backfill, once, also in intervals that the schedule has not reached', async () => {
    const start = minuteAgo(3);
    const id = await createLaggingExport(api, start, { end_at: minuteAgo(0).toISOString(), paused: true });
    // Three intervals that are older than the export, and two that are due.
    for (const [from, to] of [
      [23, 20],
      [3, 1],
    ] as const)
      await api.call('POST', `batch_exports/${id}/backfill`, {
        start_at: minuteAgo(from),
        end_at: minuteAgo(to),
      });
    for (const run of await runsOf(id)) await end(run, 'Failed');
    expect(await lagOf(id)).toMatchObject({
      intervals: 6,
      seconds: 360,
      last_completed_interval_end: null,
      gaps: { length: 5 },
    });
  });

  it('is counted quickly for any number of missed intervals', async () => {
    const year = 365 * 24 * 60;
    const start = minuteAgo(year);
    const id = await createLaggingExport(api, start);
    const { lag, ended } = await lagSince(id, start);
    expect(lag).toMatchObject({ intervals: ended, seconds: ended * 60 });
  });

  it('and every other field are the same after a rebuild of the projections', async () => {
    const responses = () => api.call('GET', 'batch_exports/?limit=1000').then(({ text }) => text);
    const { result: observed } = await withinOneMinute(async () => {
      const before = await responses();
      await rebuild(api.database.pool);
      return { before, after: await responses() };
    });
    expect(observed.after).toBe(observed.before);
  });
});

describe('the gaps of an export', () => {
  it.each([
    ['Failed', {}],
    ['Terminated', {}],
    ['Cancelled', {}],
    ['FailedRetryable', { EXPORTD_RUN_RETRY_LIMIT: '0' }],
    ['TimedOut', { EXPORTD_RUN_RETRY_LIMIT: '0' }],
  ] as const)(
    'include an interval whose run is %s without another automatic retry, until it is retried',
    async (status, settings) => {
      const id = await createLaggingExport(api, minuteAgo(1));
      await api.advanceSchedule(id);
      const [run] = await runsOf(id);
      if (run) await end(run, status, settings);
      expect((await lagOf(id)).gaps).toEqual([gapOf(run, status)]);

      await api.call('POST', `batch_exports/${id}/runs/${run?.id ?? ''}/retry`);
      expect((await lagOf(id)).gaps).toEqual([]);
      const retried = (await runsOf(id)).find((one) => one.id !== run?.id);
      if (retried) await end(retried, 'Terminated');
      expect((await lagOf(id)).gaps).toEqual([gapOf(retried, 'Terminated')]);
    },
  );

  it.each(['FailedRetryable', 'TimedOut'] as const)(
    'exclude an interval with an automatic retry after %s',
    async (status) => {
      const id = await createLaggingExport(api, minuteAgo(1));
      await api.advanceSchedule(id);
      const [run] = await runsOf(id);
      if (run) await end(run, status);
      const lag = await lagOf(id);
      expect(lag.gaps).toEqual([]);
      expect(lag.intervals).toBeGreaterThan(0);
    },
  );

  it('are the 100 newest, newest first', async () => {
    const id = await createLaggingExport(api, minuteAgo(105), { paused: true });
    await api.call('POST', `batch_exports/${id}/backfill`, {
      start_at: minuteAgo(105),
      end_at: minuteAgo(1),
    });
    const runs = await runsOf(id);
    expect(runs).toHaveLength(104);
    for (const run of runs) await end(run, 'Terminated');
    const { gaps } = await lagOf(id);
    expect(gaps).toHaveLength(100);
    expect(gaps.map(({ run_id }) => run_id)).toEqual(
      runs
        .slice(-100)
        .reverse()
        .map((run) => run.id),
    );
  });
});
