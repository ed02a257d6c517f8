import { AsyncLocalStorage } from 'node:async_hooks';
import { ApplicationFailure } from '@temporalio/common';
import { budgetExceededDetails } from '../contract/retry_budget.ts';
import { isOperatorFault } from '../contract/operator_fault.ts';
import type { Activity } from './application_failures.ts';

/** What the budget needs to know of the running attempt. Tests may leave out `info`. */
export interface BudgetContext {
  heartbeat(details?: unknown): void;
  readonly info?: {
    readonly attempt: number;
    readonly isLocal?: boolean;
    /** The budget: no single attempt may take longer than all of them together. */
    readonly startToCloseTimeoutMs?: number;
    /** The last heartbeat of the attempts before. */
    readonly heartbeatDetails?: unknown;
    readonly retryPolicy?: {
      readonly initialInterval?: number | string;
      readonly backoffCoefficient?: number;
      readonly maximumInterval?: number | string;
    };
  };
}

/** The time that the attempts of an activity have used, in milliseconds. */
interface AttemptClock {
  spentMs(): number;
  readonly budgetMs: number;
  /** Does not count the time of `wait`. */
  withoutSpending<Result>(wait: () => Promise<Result>): Promise<Result>;
}

const clocks = new AsyncLocalStorage<AttemptClock>();

/**
 * Limits the time that the attempts of an activity and the delays between them may take together. Temporal has a timeout for
 * that (schedule-to-close), but it includes the time that a task waits for a free slot: runs that nobody had started would
 * fail on a busy cluster. The time that was used is passed on with heartbeats, so a lost worker costs nothing of it.
 */
export function withRetryBudget<Activities extends Record<string, Activity>>(
  context: () => BudgetContext,
  activities: Activities,
): Activities {
  const wrap =
    (name: string, activity: Activity): Activity =>
    async (...input) => {
      const current = context();
      const { info } = current;
      const budgetMs = info?.startToCloseTimeoutMs ?? 0;
      if (!info || budgetMs <= 0 || info.isLocal === true) return activity(...input);
      const clock = createClock(spentBefore(info.heartbeatDetails), budgetMs);
      // The attempt before had no time to fail.
      if (clock.spentMs() >= almostAll * budgetMs)
        throw budgetExceeded('BudgetExceeded', `Activity ${name} did not finish within its retry budget.`);
      try {
        return await clocks.run(clock, () => activity(...input));
      } catch (error) {
        if (!(error instanceof ApplicationFailure) || error.nonRetryable === true) throw error;
        const spent_ms = clock.spentMs() + retryDelayMs(error, info);
        // The next attempt would have no time, and would end without the error.
        if (spent_ms >= almostAll * budgetMs)
          throw budgetExceeded(error.type ?? 'Error', error.message, error.details ?? []);
        current.heartbeat({ spent_ms });
        throw error;
      }
    };
  const wrapped = Object.entries(activities).map(([name, activity]) => [name, wrap(name, activity)] as const);
  // Each name keeps its function; the wrapper does not change its type.
  return Object.fromEntries(wrapped) as Activities;
}

/** The details of a heartbeat, with the time that the activity has used. */
export const heartbeatDetails = (progress: object): object => {
  const clock = clocks.getStore();
  return clock ? { ...progress, spent_ms: clock.spentMs() } : progress;
};

/** Runs a wait for other attempts, whose time does not count. */
export const withoutSpending = <Result>(wait: () => Promise<Result>): Promise<Result> => {
  const clock = clocks.getStore();
  return clock ? clock.withoutSpending(wait) : wait();
};

/** How much of its budget the running attempt has left if its task waits for no slot; undefined without a budget. */
export function remainingBudgetMs(): number | undefined {
  const clock = clocks.getStore();
  return clock && Math.max(0, clock.budgetMs - clock.spentMs());
}

/** Temporal ends an attempt at its timeout, and its last heartbeat was a little earlier. */
const almostAll = 0.9;

function createClock(spentBeforeMs: number, budgetMs: number): AttemptClock {
  const startedAt = performance.now();
  let notCountedMs = 0;
  return {
    budgetMs,
    spentMs: () => Math.round(spentBeforeMs + performance.now() - startedAt - notCountedMs),
    withoutSpending: async (wait) => {
      const waitingSince = performance.now();
      try {
        return await wait();
      } finally {
        notCountedMs += performance.now() - waitingSince;
      }
    },
  };
}

const spentBefore = (details: unknown): number =>
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
