import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { ApplicationFailure } from '@temporalio/common';
import { Context } from '@temporalio/activity';
import { maxConcurrentRanges } from '../../workflows/limits.ts';
import {
  createControlStack,
  lastHours,
  type Behaviour,
  type ControlStack,
} from '../temporal/control_plane_harness.ts';

let stack: ControlStack;
let usual: Behaviour;
const cuts = ['10:05', '10:10', '10:15', '10:20', '10:25', '10:30'].map((time) => ({
  inserted_at: `2026-11-01T${time}:00.000000Z`,
  id: 'row',
}));
beforeAll(async () => {
  stack = await createControlStack({
    EXPORTD_RANGE_ROWS: '1',
    EXPORTD_EXPORT_SLOTS: '10',
    EXPORTD_RUN_RETRY_INITIAL: '1s',
  });
  stack.behaviour.cuts = () => Promise.resolve(cuts);
  usual = { ...stack.behaviour };
  await stack.startWorker();
});
beforeEach(() => {
  Object.assign(stack.behaviour, usual);
});
afterAll(() => stack.close());

async function exportWithRun(): Promise<string> {
  const id = await stack.createExport();
  expect(await stack.command(id, 'backfill', lastHours(1))).toMatchObject({ status: 'applied' });
  return id;
}

/** Waits, with a heartbeat all the while. */
async function heartbeating(awaited: Promise<unknown>): Promise<void> {
  const context = Context.current();
  const timer = setInterval(() => context.heartbeat(), 100);
  await awaited.finally(() => clearInterval(timer));
}

const rangesOf = async (runId: string): Promise<number[]> =>
  (
    await stack.pool.query<{ range: number }>(
      `select (data ->> 'range')::int as range from exportd.journal_events
       where stream_id = $1 and event_type = 'RunRangeFinished' order by 1`,
      [runId],
    )
  ).rows.map(({ range }) => range);

describe('a run of an interval that is cut', () => {
  it('exports every range, a few at a time, and publishes once', async () => {
    let underWay = 0;
    let most = 0;
    const begun = Promise.withResolvers<undefined>();
    stack.behaviour.whileExporting = async () => {
      underWay += 1;
      most = Math.max(most, underWay);
      if (underWay === maxConcurrentRanges) begun.resolve(undefined);
      // The first ones go on together, so that a further one would be seen.
      await heartbeating(begun.promise);
      underWay -= 1;
    };
    const id = await exportWithRun();
    const run = await stack.runIn(id, 'Completed');
    expect(run.generation).toBe(1);
    expect(await rangesOf(run.id)).toEqual([0, 1, 2, 3, 4, 5, 6]);
    expect(most).toBe(maxConcurrentRanges);
  });

  it('ends when one of them fails for good, and only after the others have let go', async () => {
    let letGo = 0;
    const others = Promise.withResolvers<undefined>();
    let waiting = 0;
    stack.behaviour.whileExporting = async (_, range) => {
      if (range === 1) {
        await heartbeating(others.promise);
        throw ApplicationFailure.nonRetryable('There is no bucket "b".', 'NoSuchBucket');
      }
      waiting += 1;
      if (waiting === maxConcurrentRanges - 1) others.resolve(undefined);
      await heartbeating(Context.current().cancelled).finally(() => {
        letGo += 1;
      });
    };
    const id = await exportWithRun();
    const run = await stack.runIn(id, 'Failed');
    expect(run.latest_error).toBe('NoSuchBucket: There is no bucket "b".');
    expect(letGo).toBe(maxConcurrentRanges - 1);
  });

  it('is retried with the cuts and the ranges that it has', async () => {
    let failing = true;
    stack.behaviour.whileExporting = (_, range) =>
      failing && range === 3
        ? Promise.reject(ApplicationFailure.retryable('S3 does not answer.', 'Unavailable'))
        : Promise.resolve();
    stack.setBudget(2_000);
    const id = await exportWithRun();
    await stack.runIn(id, 'FailedRetryable');
    failing = false;
    // The next run may take as long as a busy machine needs.
    stack.setBudget(undefined);
    const second = await stack.runIn(id, 'Completed');
    expect(await rangesOf(second.id)).toHaveLength(cuts.length + 1);
  });
});
