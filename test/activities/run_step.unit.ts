import { describe, expect, it } from '@jest/globals';
import { ApplicationFailure, CancelledFailure } from '@temporalio/common';
import {
  type ActivityContext,
  type StepAttempt,
  type StepOptions,
  wrapActivities,
} from '../../activities/run_step.ts';
import { isBudgetExceeded, isTooSlow, operatorFaultDetails } from '../../src/contract/failure_details.ts';
import { DestinationError } from '../../src/destination/destination.ts';
import { createLogger } from '../../src/telemetry/logger.ts';
import { waitFor } from '../setup/wait_for.ts';
import type { Outages } from '../../src/failures/outages.ts';

const logger = createLogger('test', { EXPORTD_LOG_LEVEL: 'silent' });
const slowDown = new DestinationError('SlowDown', 'The S3 server is busy.', { transient: true });

/** One step of a run, and everything that it does in the order in which it happens. */
function createStep({
  info,
  outage,
  ...more
}: Partial<StepOptions> & {
  info?: Partial<NonNullable<ActivityContext['info']>>;
  outage?: ApplicationFailure;
} = {}) {
  const trace: unknown[] = [];
  const options: StepOptions = {
    logger,
    context: () => ({
      heartbeat: (details) => trace.push(['heartbeat', details]),
      cancellationSignal: new AbortController().signal,
      info: {
        attempt: 2,
        scheduledTimestampMs: 0,
        scheduleToCloseTimeoutMs: 0,
        startToCloseTimeoutMs: 100_000,
        retryPolicy: { initialInterval: 1_000, backoffCoefficient: 2, maximumInterval: 60_000 },
        ...info,
      },
    }),
    recorder: {
      recordFailedAttempt: (runId, { type, step }) => {
        trace.push(['report', runId, type, step]);
        return Promise.resolve();
      },
    },
    outages: {
      attempt: async (attempt, work) => {
        trace.push(['outages', attempt]);
        if (outage) throw outage;
        return work().catch((error: unknown) => {
          trace.push(['outages see', error instanceof ApplicationFailure ? error.type : error]);
          throw error;
        });
      },
    } as Outages,
    slots: {
      yieldSlot: () => {
        trace.push('yield the slot');
        return () => trace.push('reclaim the slot');
      },
    },
    ...more,
  };
  const run = async (work: (attempt: StepAttempt) => Promise<unknown>): Promise<unknown> => {
    const { exportInterval } = wrapActivities(options, {
      exportInterval: (attempt, { run_id }: { run_id: string }) => {
        trace.push(['work', run_id]);
        return work(attempt);
      },
    });
    return exportInterval({ run_id: 'run' });
  };
  /** What an attempt that fails throws. */
  const failureOf = async (error: Error): Promise<unknown> =>
    run(() => Promise.reject(error)).then(
      () => undefined,
      (failure: unknown) => failure,
    );
  return { trace, run, failureOf };
}

const attempt = { runId: 'run', number: 2, isLocal: false, needsDestination: true };

describe('one attempt of a step', () => {
  it('applies slot, conversion, outages, report and budget from the inside out', async () => {
    const { trace, run } = createStep();
    const failing = run(({ requestFailed }) => {
      requestFailed(slowDown);
      return Promise.reject(slowDown);
    });
    await expect(failing).rejects.toMatchObject({ type: 'SlowDown', nonRetryable: false });
    expect(trace).toEqual([
      ['outages', attempt],
      ['work', 'run'],
      'yield the slot',
      'reclaim the slot',
      ['outages see', 'SlowDown'],
      ['report', 'run', 'SlowDown', 'the export'],
      ['heartbeat', { spent_ms: expect.closeTo(2_000, -3) }],
    ]);
  });

  it('ends a local activity that takes too long, and what it waits for, but no work that limits itself', async () => {
    const start = (isLocal: boolean, { isUnlimited = false } = {}) => {
      const released = Promise.withResolvers<undefined>();
      let signal: AbortSignal | undefined;
      const { run } = createStep({ info: { isLocal }, localLimitMs: 20 });
      const ended = run((attempt) => {
        signal = attempt.signal;
        return isUnlimited ? attempt.withoutLimit(() => released.promise) : released.promise;
      }).then(
        () => undefined,
        (error: unknown) => {
          const { type, nonRetryable, details } = error as ApplicationFailure;
          return [type, nonRetryable, isTooSlow(details)];
        },
      );
      return { ended, released, isAborted: () => signal?.aborted };
    };
    // The limits of the others would pass first, if they had one.
    const others = [start(false), start(true, { isUnlimited: true })];
    const local = start(true);
    expect(await local.ended).toEqual(['TooSlow', true, true]);
    expect(local.isAborted()).toBe(true);
    // Its work goes on, without the limit of anything.
    local.released.resolve(undefined);
    for (const { isAborted, released, ended } of others) {
      expect(isAborted()).toBe(false);
      released.resolve(undefined);
      expect(await ended).toBeUndefined();
      expect(isAborted()).toBe(true);
    }
  });

  it('starts nothing while its run waits, and counts the delay of the wait', async () => {
    const outage = ApplicationFailure.create({
      type: 'DestinationUnavailable',
      message: 'No response.',
      nextRetryDelay: 30_000,
    });
    const { trace, run } = createStep({ outage });
    await expect(run(() => Promise.resolve())).rejects.toBe(outage);
    expect(trace).toEqual([
      ['outages', attempt],
      ['heartbeat', { spent_ms: expect.closeTo(30_000, -3) }],
    ]);
  });

  it('reports a failure that the budget ends, and keeps its type', async () => {
    const { trace, failureOf } = createStep({ info: { heartbeatDetails: { spent_ms: 89_500 } } });
    const failure = (await failureOf(slowDown)) as ApplicationFailure;
    expect(failure).toMatchObject({ type: 'SlowDown', nonRetryable: true });
    expect(isBudgetExceeded(failure.details)).toBe(true);
    expect(trace.at(-1)).toEqual(['report', 'run', 'SlowDown', 'the export']);
  });

  it.each([
    ['the first failure', { attempt: 1 }, slowDown],
    ['a permanent error', {}, new DestinationError('NoSuchBucket', 'No bucket.', { transient: false })],
    [
      "an operator's fault",
      {},
      ApplicationFailure.create({ type: 'RelationNotFound', details: [operatorFaultDetails] }),
    ],
  ])('does not report %s', async (_, info, error) => {
    const { trace, failureOf } = createStep({ info });
    await failureOf(error);
    expect(trace).not.toContainEqual(expect.arrayContaining(['report']));
  });

  it('reports a request that fails again within the attempt', async () => {
    const { trace, run } = createStep({ info: { attempt: 1 } });
    await run(({ requestFailed }) => {
      for (let number = 0; number < 3; number += 1) requestFailed(slowDown);
      return Promise.resolve();
    });
    const report = ['report', 'run', 'SlowDown', 'the export'];
    expect(trace).toEqual([
      ['outages', { ...attempt, number: 1 }],
      ['work', 'run'],
      'yield the slot',
      report,
      report,
      'reclaim the slot',
    ]);
  });

  it('sends heartbeats with its rows while the work runs', async () => {
    const { trace, run } = createStep({ heartbeatTimeoutMs: 4 });
    let ended: AbortSignal | undefined;
    await run(async ({ signal, progress }) => {
      ended = signal;
      progress.rows = 5;
      await waitFor(() => trace.length > 3, 'two heartbeats');
      expect(signal.aborted).toBe(false);
    });
    expect(trace.at(-1)).toEqual(['heartbeat', { rows: 5, spent_ms: expect.any(Number) }]);
    expect(ended?.aborted).toBe(true);
  });

  it.each([
    ['NoSuchBucket', new DestinationError('NoSuchBucket', 'No bucket.', { transient: false })],
    ['UnexpectedError', new CancelledFailure('CANCELLED')],
  ])('retries an activity that records decisions after %s', async (type, error) => {
    const { failureOf } = createStep({ retryIndefinitely: true });
    expect(await failureOf(error)).toMatchObject({ type, nonRetryable: false });
  });

  it('leaves a cancellation unchanged', async () => {
    const cancelled = new CancelledFailure('CANCELLED');
    expect(await createStep().failureOf(cancelled)).toBe(cancelled);
  });
});
