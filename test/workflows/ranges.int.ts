import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { ApplicationFailure } from '@temporalio/common';
import { Context } from '@temporalio/activity';
import { createControlPlaneHarness, type ControlPlaneHarness } from '../temporal/control_plane_harness.ts';
import { readEvents } from '../journal/read_stream.ts';

let stack: ControlPlaneHarness;
const rangesAtOnce = 3;
const splitKeys = ['10:05', '10:10', '10:15', '10:20', '10:25', '10:30'].map((time) => ({
  inserted_at: `2026-11-01T${time}:00.000000Z`,
  id: 'row',
}));
beforeAll(async () => {
  stack = await createControlPlaneHarness({
    EXPORTD_RANGE_ROWS: '1',
    EXPORTD_EXPORT_SLOTS: '10',
    EXPORTD_RANGES_AT_ONCE: String(rangesAtOnce),
    EXPORTD_RUN_RETRY_INITIAL: '1s',
  });
  await stack.startWorker();
});
beforeEach(() => {
  stack.resetBehaviour();
  stack.behaviour.splitKeys = () => Promise.resolve(splitKeys);
});
afterAll(() => stack.close());

/** Waits with heartbeats. */
async function waitWithHeartbeats(awaited: Promise<unknown>): Promise<void> {
  const context = Context.current();
  const timer = setInterval(() => context.heartbeat(), 100);
  await awaited.finally(() => clearInterval(timer));
}

const rangesOf = async (runId: string): Promise<number[]> =>
  (await readEvents(stack.pool, runId))
    .filter(({ type, data }) => type === 'RunRangeFinished' || data.finishes_range === true)
    .map(({ data }) => Number(data.range))
    .toSorted((one, other) => one - other);

describe('a run of a split interval', () => {
  it('exports every range, a few at a time, and publishes once', async () => {
    let running = 0;
    let maxRunning = 0;
    const started = Promise.withResolvers<undefined>();
    stack.behaviour.duringExport = async () => {
      running += 1;
      maxRunning = Math.max(maxRunning, running);
      if (running === rangesAtOnce) started.resolve(undefined);
      // The first ranges wait for each other, so that one too many would be noticed.
      await waitWithHeartbeats(started.promise);
      running -= 1;
    };
    const id = await stack.createExportWithRun();
    const run = await stack.waitForRun(id, 'Completed');
    expect(run.generation).toBe(1);
    expect(await rangesOf(run.id)).toEqual([0, 1, 2, 3, 4, 5, 6]);
    expect(maxRunning).toBe(rangesAtOnce);
  });

  it('fails with one of its ranges, after the others have stopped', async () => {
    let stopped = 0;
    const others = Promise.withResolvers<undefined>();
    let waiting = 0;
    stack.behaviour.duringExport = async (_, range) => {
      if (range === 1) {
        await waitWithHeartbeats(others.promise);
        throw ApplicationFailure.nonRetryable('There is no bucket "b".', 'NoSuchBucket');
      }
      waiting += 1;
      if (waiting === rangesAtOnce - 1) others.resolve(undefined);
      await waitWithHeartbeats(Context.current().cancelled).finally(() => {
        stopped += 1;
      });
    };
    const id = await stack.createExportWithRun();
    const run = await stack.waitForRun(id, 'Failed');
    expect(run.latest_error).toBe('NoSuchBucket: There is no bucket "b".');
    expect(stopped).toBe(rangesAtOnce - 1);
  });

  it('is retried with the same ranges', async () => {
    let failing = true;
    stack.behaviour.duringExport = (_, range) =>
      failing && range === 3
        ? Promise.reject(ApplicationFailure.retryable('The S3 server did not respond.', 'Unavailable'))
        : Promise.resolve();
    stack.setActivityTimeout(2_000);
    const id = await stack.createExportWithRun();
    await stack.waitForRun(id, 'FailedRetryable');
    failing = false;
    // No limit for the next run: the machine may be busy.
    stack.setActivityTimeout(undefined);
    const second = await stack.waitForRun(id, 'Completed');
    expect(await rangesOf(second.id)).toHaveLength(splitKeys.length + 1);
  });
});
