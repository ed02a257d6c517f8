import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import { ApplicationFailure } from '@temporalio/common';
import { isBudgetExceeded, operatorFaultDetails } from '../../src/contract/failure_details.ts';
import { openRetryBudget, type BudgetContext, type RetryBudget } from '../../activities/run_step.ts';

const budgetMs = 100_000;
const unavailable = (more: { nextRetryDelay?: number; details?: unknown[] } = {}) =>
  ApplicationFailure.create({ type: 'Unavailable', message: 'No response.', ...more });

/** Runs one attempt; returns what it threw and its last heartbeat. */
async function attempt(
  work: (budget: RetryBudget) => Promise<unknown>,
  info: Partial<BudgetContext['info']> = {},
): Promise<{ failure: ApplicationFailure | undefined; details: unknown }> {
  let details: unknown;
  const budget = openRetryBudget('run', {
    heartbeat: (sent) => {
      details = sent;
    },
    info: {
      attempt: 1,
      startToCloseTimeoutMs: budgetMs,
      retryPolicy: { initialInterval: 1_000, backoffCoefficient: 2, maximumInterval: 60_000 },
      ...info,
    },
  });
  const failure = await budget
    .spend(() => work(budget))
    .then(
      () => undefined,
      (error: unknown) => error as ApplicationFailure,
    );
  return { failure, details };
}
const failWith = (failure: ApplicationFailure) => () => Promise.reject(failure);
const spentOf = (details: unknown): number => (details as { spent_ms: number }).spent_ms;

describe('the retry budget of an activity', () => {
  it('adds up the delays between its attempts, whenever they start', async () => {
    const failures: (ApplicationFailure | undefined)[] = [];
    let details: unknown;
    for (let number = 1; number <= 7; number += 1) {
      const ended = await attempt(failWith(unavailable()), { attempt: number, heartbeatDetails: details });
      failures.push(ended.failure);
      details = ended.details;
    }
    // 1, 2, 4, 8, 16 and 32 seconds are 63, and 60 more are too many.
    expect(failures.map((failure) => failure?.nonRetryable)).toEqual([
      ...Array.from({ length: 6 }, () => false),
      true,
    ]);
    expect(failures.at(-1)).toMatchObject({ type: 'Unavailable', message: 'No response.' });
    expect(isBudgetExceeded(failures.at(-1)?.details)).toBe(true);
  });

  it('counts the delay that an error asks for', async () => {
    const { details } = await attempt(failWith(unavailable({ nextRetryDelay: 30_000 })));
    expect(spentOf(details)).toBeGreaterThanOrEqual(30_000);
    expect(spentOf(details)).toBeLessThan(60_000);
  });

  it('counts the time of an attempt, but not what it waits for other attempts', async () => {
    const working = await attempt(async () => {
      await delay(30);
      throw unavailable({ nextRetryDelay: 0 });
    });
    expect(spentOf(working.details)).toBeGreaterThanOrEqual(25);
    const waiting = await attempt(async (budget) => {
      await budget.withoutSpending(() => delay(60));
      expect(spentOf(budget.heartbeatDetails({ rows: 5 }))).toBeLessThan(50);
      throw unavailable({ nextRetryDelay: 0 });
    });
    expect(spentOf(waiting.details)).toBeLessThan(50);
  });

  it('is passed on with each heartbeat, which the attempt after a lost worker receives', async () => {
    await attempt(
      (budget) => {
        expect(budget.heartbeatDetails({ rows: 5 })).toEqual({
          rows: 5,
          spent_ms: expect.closeTo(40_000, -3),
        });
        expect(budget.remainingMs()).toBeLessThanOrEqual(60_000);
        return Promise.resolve();
      },
      { heartbeatDetails: { rows: 3, spent_ms: 40_000 } },
    );
  });

  it('ends an activity whose last attempt used it up', async () => {
    let started = false;
    const { failure } = await attempt(
      () => {
        started = true;
        return Promise.resolve();
      },
      { attempt: 2, heartbeatDetails: { spent_ms: 95_000 } },
    );
    expect(started).toBe(false);
    expect(failure).toMatchObject({ type: 'BudgetExceeded', nonRetryable: true });
  });

  it('ends with the error itself if the next attempt would have no time left', async () => {
    const { failure } = await attempt(failWith(unavailable({ nextRetryDelay: 15_000 })), {
      attempt: 2,
      heartbeatDetails: { spent_ms: 80_000 },
    });
    expect(failure).toMatchObject({ type: 'Unavailable', nonRetryable: true });
  });

  it("keeps the details of an operator's fault, and permanent errors", async () => {
    const fault = unavailable({ nextRetryDelay: 2 * budgetMs, details: [operatorFaultDetails] });
    expect((await attempt(failWith(fault))).failure).toMatchObject({
      nonRetryable: true,
      details: [operatorFaultDetails],
    });
    const permanent = ApplicationFailure.nonRetryable('There is no bucket.', 'NoSuchBucket');
    expect((await attempt(failWith(permanent))).failure).toBe(permanent);
  });

  it('does not limit a local activity', async () => {
    const { failure, details } = await attempt(failWith(unavailable({ nextRetryDelay: 2 * budgetMs })), {
      isLocal: true,
    });
    expect([failure?.nonRetryable, details]).toEqual([false, undefined]);
  });
});
