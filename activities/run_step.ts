import { Context, type Info } from '@temporalio/activity';
import { ApplicationFailure, ApplicationFailureCategory, CancelledFailure } from '@temporalio/common';
import { budgetExceededDetails, isOperatorFault, tooSlowDetails } from '../src/contract/failure_details.ts';
import type { RunRecorder } from '../src/decisions/run_recorder.ts';
import type { DestinationError } from '../src/destination/destination.ts';
import { destinationUnavailable } from '../src/domain/circuit.ts';
import {
  type YieldableSlot,
  type YieldableSlots,
  yieldSlotWhileStalled,
} from '../src/export/yieldable_slots.ts';
import { operatorFaultOf, stackFramesOf, toApplicationFailure } from '../src/failures/classify_error.ts';
import type { Logger } from '../src/telemetry/logger.ts';
import type { Outages } from '../src/failures/outages.ts';

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
const unlimitedBudget: RetryBudget = {
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

/** What an activity uses of Temporal's context. */
export interface ActivityContext extends BudgetContext {
  readonly cancellationSignal: AbortSignal;
  /** The attempt, and when Temporal stops retrying the activity. Tests may leave it out. */
  readonly info?: NonNullable<BudgetContext['info']> &
    Pick<Info, 'scheduledTimestampMs' | 'scheduleToCloseTimeoutMs'>;
}

/** What the steps of a group of activities need. What is left out does not apply to them. */
export interface StepOptions {
  readonly logger: Logger;
  /** Temporal's context of the running activity by default; tests bring their own. */
  readonly context?: (() => ActivityContext) | undefined;
  /** Sends heartbeats, unless the activity is a local one, which has none. */
  readonly heartbeatTimeoutMs?: number;
  /**
   * How long a local activity may take, in milliseconds: it keeps a workflow task open, and a slot that other decisions need.
   * After that it fails, and its workflow calls it as an ordinary one.
   */
  readonly localLimitMs?: number;
  /** Retries after every error, a permanent one and a cancelled request too. */
  readonly retryIndefinitely?: boolean;
  /** Shows on the run what a step is retried after. */
  readonly recorder?: Pick<RunRecorder, 'recordFailedAttempt'>;
  /** Where the run of a step waits for the operator, and with `slots` for its destination. */
  readonly outages?: Outages;
  /** The slots of the queue of exports. Its tasks may wait for one for hours, which a retry budget does not count. */
  readonly slots?: YieldableSlots;
}

/** A running attempt of a step, as its work sees it. */
export interface StepAttempt {
  /** Aborted on cancellation, and when the attempt has ended. */
  readonly signal: AbortSignal;
  /** Rows so far. Heartbeats report it, and an attempt whose rows do not change is stalled. */
  readonly progress: { rows: number };
  /** Sends a heartbeat at once. Its response reports a cancellation that came while the activity waited for its slot. */
  readonly heartbeat: () => void;
  /** Does not count the time of `wait` towards the retry budget. */
  readonly withoutSpending: RetryBudget['withoutSpending'];
  /** Its slot, to be yielded while it waits. */
  readonly slot: YieldableSlots;
  /** A request to the destination failed. While it is retried, another attempt uses the slot. */
  readonly requestFailed: (failure: DestinationError) => void;
  /** Does work that limits its own time, without the limit of a local activity. It has all its time again after that. */
  readonly withoutLimit: <Result>(work: () => Promise<Result>) => Promise<Result>;
}

/** What an activity does in one attempt, with the input of its workflow. */
type Work = (attempt: StepAttempt, ...input: never[]) => Promise<unknown>;

/** The activities that workflows call: without the attempt. */
type Activities<Works> = {
  readonly [Name in keyof Works]: Works[Name] extends (
    attempt: StepAttempt,
    ...input: infer Input
  ) => infer Output
    ? (...input: Input) => Output
    : never;
};

/** Makes activities of a group of functions: each call is a step, by `runStep`. */
export function wrapActivities<Works extends Readonly<Record<string, Work>>>(
  options: StepOptions,
  works: Works,
): Activities<Works> {
  const wrapped = Object.entries<Work>(works).map(([name, work]) => {
    const activity = (...input: never[]) =>
      runStep(options, { name, runId: runIdOf(input) }, (attempt) => work(attempt, ...input));
    return [name, activity] as const;
  });
  // Each name keeps its function, whose first argument `runStep` passes.
  return Object.fromEntries(wrapped) as Activities<Works>;
}

/** All steps of a run have its id in their input. */
const runIdOf = ([input]: readonly (Partial<Record<'run_id', string>> | undefined)[]): string =>
  input?.run_id ?? '';

/** Of a step that has none to yield. */
const noSlot: YieldableSlot = { yieldSlot: () => undefined, stalled: () => undefined };

/** An activity by name, and the run that it is a step of; empty if it is of none. */
interface Step {
  readonly name: string;
  readonly runId: string;
}

/**
 * Runs one attempt of a step: every activity goes through this. What it applies, from the outside in, and why there:
 *
 * 1. **Retry budget.** It sees every failure with its delay, whatever caused it, and decides last whether there is another
 *    attempt. It counts all the time of the attempt.
 * 2. **Report.** Inside the budget, which says until when the step is retried. Around the waits, whose failures it has to
 *    tell from errors of the step.
 * 3. **Outages**, the circuit before the operator's fault (`Outages`). Before heartbeats and slot, since a run that waits
 *    starts nothing. Around the conversion, because the owner of the failure decides who waits.
 * 4. **Endless retries** of activities that record decisions, also after a cancelled request. If the control database rejects
 *    one for good, a person has to fix the database, and a failed workflow would only lose the command.
 * 5. **Application failure.** Everything outside of it knows failures by type, owner and delay only, and no secret or row of
 *    the original error leaves it. Other cancellations pass unchanged.
 * 6. **Heartbeats**, and the limit of a local activity. They last as long as the work, also while it waits without its slot.
 * 7. **Slot.** Innermost, since only the work makes progress: a stalled attempt lets another one use its slot.
 *
 * @throws ApplicationFailure or a cancellation
 */
async function runStep<Result>(
  options: StepOptions,
  step: Step,
  work: (attempt: StepAttempt) => Promise<Result>,
): Promise<Result> {
  const { logger, slots, outages } = options;
  const context = options.context?.() ?? Context.current();
  const budget = slots ? openRetryBudget(step.name, context) : unlimitedBudget;
  const report = createReport(options, step, context, budget);
  const { attempt: number = 1, isLocal = false } = context.info ?? {};

  const withSlot = (
    progress: { rows: number },
    signal: AbortSignal,
    heartbeat: () => void,
    withoutLimit: StepAttempt['withoutLimit'],
  ) => {
    const workWith = (slot: YieldableSlot) =>
      work({
        signal,
        progress,
        heartbeat,
        withoutLimit,
        withoutSpending: budget.withoutSpending,
        slot,
        requestFailed: (failure) => {
          if (!failure.transient) return;
          slot.stalled();
          report.requestFailed(failure);
        },
      });
    return slots ? yieldSlotWhileStalled(slots, () => progress.rows, workWith) : workWith(noSlot);
  };
  const withHeartbeats = async (): Promise<Result> => {
    const progress = { rows: 0 };
    const heartbeat = () => context.heartbeat(slots ? budget.heartbeatDetails(progress) : undefined);
    const ended = new AbortController();
    const limit = limitLocally(step.name, isLocal ? options.localLimitMs : undefined);
    const timer =
      options.heartbeatTimeoutMs === undefined || isLocal
        ? undefined
        : setInterval(heartbeat, heartbeatIntervalMs(options.heartbeatTimeoutMs));
    try {
      const signal = AbortSignal.any([context.cancellationSignal, ended.signal]);
      return await Promise.race([withSlot(progress, signal, heartbeat, limit.without), limit.exceeded]);
    } finally {
      clearInterval(timer);
      limit.end();
      ended.abort(attemptEnded);
    }
  };
  const withApplicationFailure = async (): Promise<Result> => {
    try {
      return await withHeartbeats();
    } catch (error) {
      const isCancelled = isCancellation(error);
      if (isCancelled && !options.retryIndefinitely) throw error;
      const failure = toApplicationFailure(error);
      const { type, message } = failure;
      if (type === 'UnexpectedError' && !isCancelled)
        logger.error({ activity: step.name, stack: stackFramesOf(error) }, message);
      if (!options.retryIndefinitely) throw failure;
      logger.warn({ activity: step.name, type }, message);
      throw ApplicationFailure.retryable(message, type);
    }
  };
  const withOutages = () =>
    outages
      ? outages.attempt(
          { runId: step.runId, number, isLocal, needsDestination: slots !== undefined },
          withApplicationFailure,
        )
      : withApplicationFailure();
  const withReport = async (): Promise<Result> => {
    try {
      return await withOutages();
    } catch (error) {
      await report.attemptFailed(error);
      throw error;
    }
  };
  return budget.spend(withReport);
}

/** Why the signal of an attempt is aborted at its end. One for all, since each would have a stack trace. */
const attemptEnded = Object.assign(new Error('The attempt has ended.'), { name: 'AbortError' });

/**
 * Limits the time of a local activity. It does not wait for a server that hangs.
 * @param limitMs in milliseconds; undefined for no limit
 * @returns `exceeded` rejects after that time, without that of `without`; `end` is called at the end of the attempt
 */
function limitLocally(name: string, limitMs: number | undefined) {
  const { promise: exceeded, reject } = Promise.withResolvers<never>();
  let timer: NodeJS.Timeout | undefined;
  let isOver = false;
  const start = (): void => {
    if (limitMs !== undefined && !isOver) timer = setTimeout(() => reject(tooSlow(name)), limitMs);
  };
  const without: StepAttempt['withoutLimit'] = async (work) => {
    clearTimeout(timer);
    try {
      return await work();
    } finally {
      start();
    }
  };
  const end = (): void => {
    isOver = true;
    clearTimeout(timer);
  };
  start();
  return { exceeded, without, end };
}

const tooSlow = (name: string): ApplicationFailure =>
  ApplicationFailure.create({
    type: 'TooSlow',
    message: `Activity ${name} takes longer than a local activity may.`,
    nonRetryable: true,
    details: [tooSlowDetails],
    // Expected, so that the SDK logs nothing.
    category: ApplicationFailureCategory.BENIGN,
  });

/** A cancellation, or the AbortError that a cancelled wait or request throws: Temporal recognizes both. */
const isCancellation = (error: unknown): boolean =>
  error instanceof CancelledFailure || (error instanceof Error && error.name === 'AbortError');

/** Several, so that one lost or late heartbeat does not end the attempt. */
const heartbeatsPerTimeout = 4;
/** Cancellations arrive with responses to heartbeats, and a person who cancels a run waits for them. */
const maxHeartbeatIntervalMs = 1_000;

/**
 * Milliseconds between two heartbeats of an activity, for its timer and for the throttling of the SDK. On a timer an activity
 * that waits for a slow server is not taken for dead; one that ends before the first tick costs no heartbeat.
 */
export const heartbeatIntervalMs = (heartbeatTimeoutMs: number): number =>
  Math.min(maxHeartbeatIntervalMs, heartbeatTimeoutMs / heartbeatsPerTimeout);

/** What each step of a run does, as `latest_error` and the log call it. Another step reports nothing. */
const descriptions: Readonly<Record<string, string>> = {
  checkBarrier: 'the check for open transactions',
  countRows: 'the count of rows',
  checkReplacement: 'the comparison with the current manifest',
  exportInterval: 'the export',
  exportRange: 'the export',
  finishExport: 'the comparison with the source',
  completeSmallRun: 'the export',
  exportWhenSettled: 'the check for open transactions',
  publishManifest: 'publishing the manifest',
};

const unreported = new Set([
  // Errors of an attempt that another one has replaced. The run itself makes progress.
  'RunEnded',
  'GenerationSuperseded',
  // Responses show the open circuit of the destination with all its runs.
  destinationUnavailable,
  'S3Unreachable',
]);

/** How often a request failed in one attempt before the run shows it. */
const failuresBeforeReport = 2;

/** Shows on a run what its step is retried after. A report never fails: the step throws its own error. */
function createReport(
  { recorder, logger }: StepOptions,
  { name, runId }: Step,
  { info }: ActivityContext,
  budget: RetryBudget,
) {
  const description = descriptions[name];
  const requestFailures = new Map<string, number>();
  /** When the activity is no longer retried, if it does not wait for a slot until then; null if unknown. */
  const endOfRetries = (): Date | null => {
    if (info?.scheduleToCloseTimeoutMs)
      return new Date(info.scheduledTimestampMs + info.scheduleToCloseTimeoutMs);
    const remainingMs = budget.remainingMs();
    // By the clock of the worker; informational.
    return remainingMs === undefined ? null : new Date(Date.now() + remainingMs);
  };
  const report = async (type: string, message: string): Promise<void> => {
    if (!recorder || description === undefined || unreported.has(type)) return;
    await recorder
      .recordFailedAttempt(runId, { type, message, step: description, retriedUntil: endOfRetries() })
      .catch(() => logger.warn({ run_id: runId, type }, 'A failed attempt of a run could not be recorded.'));
  };
  return {
    /** From the second attempt on. The first failure may be a short interruption. */
    attemptFailed: async (error: unknown): Promise<void> => {
      if ((info?.attempt ?? 1) <= 1 || !(error instanceof ApplicationFailure)) return;
      // Responses show operator's faults, too.
      if (error.nonRetryable === true || !error.type || operatorFaultOf(error)) return;
      await report(error.type, error.message);
    },
    /** From the second error of a type on: a file that cannot be resumed is retried within one attempt for minutes. */
    requestFailed: ({ type, messageForOwner }: DestinationError): void => {
      const count = (requestFailures.get(type) ?? 0) + 1;
      requestFailures.set(type, count);
      if (count >= failuresBeforeReport) void report(type, messageForOwner);
    },
  };
}
