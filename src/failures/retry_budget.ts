import type { Info } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import { budgetExceededDetails, isOperatorFault } from '../contract/failure_details.ts';

/** What the budget needs to know of the running attempt. Tests may leave out `info`. */
export interface BudgetContext {
  heartbeat(details?: unknown): void;
  /** `startToCloseTimeoutMs` is the budget: no single attempt may take longer than all of them together. */
  readonly info?: Pick<Info, 'attempt'> &
    Partial<Pick<Info, 'isLocal' | 'startToCloseTimeoutMs' | 'heartbeatDetails' | 'retryPolicy'>>;
}

/** The retry budget of an activity, as its running attempt sees it. */
export interface RetryBudget {
  /** Runs the attempt. @throws ApplicationFailure that is not retried once the budget is used up */
  spend<Result>(work: () => Promise<Result>): Promise<Result>;
  /** Does not count the time of `wait`, such as one for other attempts of the same export. */
  readonly withoutSpending: <Result>(wait: () => Promise<Result>) => Promise<Result>;
  /** The details of a heartbeat, with the time that the activity has used. */
  heartbeatDetails(progress: object): object;
  /** How much is left if the activity's task waits for no slot, in milliseconds; undefined if it has no limit. */
  remainingMs(): number | undefined;
}

/** The budget of an activity whose retries Temporal or its workflow limits. */
export const unlimitedBudget: RetryBudget = {
  spend: (work) => work(),
  withoutSpending: (wait) => wait(),
  heartbeatDetails: (progress) => progress,
  remainingMs: () => undefined,
};

/** The share of the budget that attempts may use: Temporal ends one at its timeout, a little after its last heartbeat. */
const usableShare = 0.9;

/**
 * Limits the time that the attempts of an activity and the delays between them may take together. Temporal has a timeout for
 * that (schedule-to-close), but it includes the time that a task waits for a free slot: runs that had not started would
 * fail on a busy cluster. The time that was used is passed on with heartbeats, so a lost worker costs nothing of it.
 * @param name that of the activity
 */
export function openRetryBudget(name: string, context: BudgetContext): RetryBudget {
  const { info } = context;
  const budgetMs = info?.startToCloseTimeoutMs ?? 0;
  if (!info || budgetMs <= 0 || info.isLocal === true) return unlimitedBudget;
  const startedAt = performance.now();
  const spentBeforeMs = spentIn(info.heartbeatDetails);
  let notCountedMs = 0;
  const spentMs = (): number => Math.round(spentBeforeMs + performance.now() - startedAt - notCountedMs);
  return {
    spend: async (work) => {
      // The attempt before had no time to fail.
      if (spentMs() >= usableShare * budgetMs)
        throw budgetExceeded('BudgetExceeded', `Activity ${name} did not finish within its retry budget.`);
      try {
        return await work();
      } catch (error) {
        if (!(error instanceof ApplicationFailure) || error.nonRetryable === true) throw error;
        const spent_ms = spentMs() + retryDelayMs(error, info);
        // The next attempt would have no time, and would end without the error.
        if (spent_ms >= usableShare * budgetMs)
          throw budgetExceeded(error.type ?? 'Error', error.message, error.details ?? []);
        context.heartbeat({ spent_ms });
        throw error;
      }
    },
    withoutSpending: async (wait) => {
      const waitingSince = performance.now();
      try {
        return await wait();
      } finally {
        notCountedMs += performance.now() - waitingSince;
      }
    },
    heartbeatDetails: (progress) => ({ ...progress, spent_ms: spentMs() }),
    remainingMs: () => Math.max(0, budgetMs - spentMs()),
  };
}

/** The time that earlier attempts used, in milliseconds, by the details of their last heartbeat. */
const spentIn = (details: unknown): number =>
  typeof details === 'object' && details !== null && 'spent_ms' in details
    ? Math.max(0, Number(details.spent_ms) || 0)
    : 0;

/** When Temporal starts the next attempt after a failure, if a slot is free. */
function retryDelayMs(
  { nextRetryDelay }: ApplicationFailure,
  { attempt, retryPolicy }: NonNullable<BudgetContext['info']>,
): number {
  if (typeof nextRetryDelay === 'number') return nextRetryDelay;
  const delay =
    millisecondsOf(retryPolicy?.initialInterval) * (retryPolicy?.backoffCoefficient ?? 2) ** (attempt - 1);
  return Math.min(delay, millisecondsOf(retryPolicy?.maximumInterval, delay));
}

/** exportd and Temporal's SDK pass durations as numbers. */
const millisecondsOf = (duration: unknown, fallback = 0): number =>
  typeof duration === 'number' ? duration : fallback;

/** The failure that ends the retries. The details of an operator's fault stay. */
const budgetExceeded = (type: string, message: string, details: unknown[] = []): ApplicationFailure =>
  ApplicationFailure.create({
    type,
    message,
    nonRetryable: true,
    details: isOperatorFault(details) ? details : [budgetExceededDetails],
  });
