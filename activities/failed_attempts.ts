import { ApplicationFailure } from '@temporalio/common';
import type { DestinationError } from '../src/destination/destination.ts';
import type { RunRecorder } from '../src/decisions/run_recorder/index.ts';
import type { OpenDestination } from '../src/destination/open_destination.ts';
import { destinationUnavailable } from '../src/domain/circuit.ts';
import { operatorFaultOf, type Activity } from '../src/failures/application_failures.ts';
import { remainingBudgetMs } from '../src/failures/retry_budget.ts';
import type { Logger } from '../src/telemetry/logger.ts';
import type { ActivityContext } from './heartbeats.ts';

/** Dependencies of reporting failed attempts. */
export interface FailedAttemptDependencies {
  readonly recorder: Pick<RunRecorder, 'recordFailedAttempt'>;
  readonly logger: Logger;
}

/** An error of a step, as `classifyError` describes it. */
interface StepError {
  readonly type: string;
  readonly message: string;
}

/** What each activity of a run does, as `latest_error` and the log call it. */
const steps = {
  checkBarrier: 'the check for open transactions',
  countRows: 'the count of rows',
  checkReplacement: 'the comparison with the current manifest',
  exportInterval: 'the export',
  exportRange: 'the export',
  finishExport: 'the comparison with the source',
  publishEmpty: 'publishing the manifest',
  publishManifest: 'publishing the manifest',
} as const;
export type ReportedStep = keyof typeof steps;

const unreported = new Set([
  // Errors of an attempt that another one has replaced. The run itself makes progress.
  'RunEnded',
  'GenerationSuperseded',
  // Responses show the open circuit of the destination with all its runs.
  destinationUnavailable,
  'S3Unreachable',
]);

/** Reports an error of a step of a run, if the step is retried after it. Never fails: the step reports its own error. */
async function report(
  { recorder, logger }: FailedAttemptDependencies,
  runId: string,
  step: ReportedStep,
  { info }: ActivityContext,
  { type, message }: StepError,
): Promise<void> {
  if (unreported.has(type)) return;
  const retriedUntil = endOfRetries(info);
  await recorder
    .recordFailedAttempt(runId, { type, message, step: steps[step], retriedUntil })
    .catch(() => logger.warn({ run_id: runId, type }, 'A failed attempt of a run could not be recorded.'));
}

/** When an activity is no longer retried, if it does not wait for a slot until then; null if nobody knows. */
function endOfRetries(info: ActivityContext['info']): Date | null {
  if (info?.scheduleToCloseTimeoutMs)
    return new Date(info.scheduledTimestampMs + info.scheduleToCloseTimeoutMs);
  const remainingMs = remainingBudgetMs();
  // By the clock of the worker, for people only.
  return remainingMs === undefined ? null : new Date(Date.now() + remainingMs);
}

/**
 * Wraps activities of a run that throw application failures: from the second attempt on, the run shows what its step is
 * retried after. The first failure may be a short interruption.
 */
export function reportFailedAttempts<Activities extends Partial<Record<ReportedStep, Activity>>>(
  dependencies: FailedAttemptDependencies,
  context: () => ActivityContext,
  activities: Activities,
): Activities {
  const wrapped = Object.entries(activities).map(([name, activity]) => {
    const step = name as ReportedStep;
    const reporting: Activity = async (...input) => {
      try {
        return await activity(...input);
      } catch (error) {
        const current = context();
        const isRepeated = (current.info?.attempt ?? 1) > 1;
        if (error instanceof ApplicationFailure && isRepeated && error.nonRetryable !== true) {
          const { type, message } = error;
          // Responses show operator's faults, too.
          if (type && !operatorFaultOf(error))
            await report(dependencies, runIdOf(input), step, current, { type, message });
        }
        throw error;
      }
    };
    return [name, reporting] as const;
  });
  // Each name keeps its function; the wrapper does not change its type.
  return Object.fromEntries(wrapped) as Activities;
}

/** All activities of a run have its id in their input. */
const runIdOf = ([input]: readonly { readonly run_id: string }[]): string => input?.run_id ?? '';

/** How often a request failed in one activity before the run shows it. */
const failuresBeforeReport = 2;

/**
 * Opens destinations whose requests report errors that they are retried after, from the second one of a type on: a
 * file that cannot be resumed is retried within one attempt for minutes.
 */
export const reportingDestinations =
  (
    dependencies: FailedAttemptDependencies & { readonly openDestination: OpenDestination },
    context: ActivityContext,
    runId: string,
    step: ReportedStep,
  ): OpenDestination =>
  async (spec, onError, waiting) => {
    const failures = new Map<string, number>();
    const onFailure = (failure: DestinationError): void => {
      onError(failure);
      if (!failure.transient) return;
      const count = (failures.get(failure.type) ?? 0) + 1;
      failures.set(failure.type, count);
      if (count >= failuresBeforeReport) void report(dependencies, runId, step, context, failure);
    };
    return dependencies.openDestination(spec, onFailure, waiting);
  };
