import { ApplicationFailure, ApplicationFailureCategory } from '@temporalio/common';
import { boundText } from '../src/config/bounds.ts';
import type { Settings } from '../src/config/settings.ts';
import { classifyError, stackFramesOf } from '../src/failures/classify_error.ts';
import {
  beginJob,
  deleteWithdrawn,
  finishJob,
  isWithdrawn,
  type JobHandler,
  type JobOutcome,
} from '../src/jobs/jobs.ts';
import type { Pool } from '../src/journal/database.ts';
import type { Logger } from '../src/telemetry/logger.ts';
import { wrapActivities, type ActivityContext } from './run_step.ts';

/** The slots of jobs, of which each project has a share. */
export interface JobSlots {
  /**
   * Waits until a job of a project may use a slot.
   * @returns a function that releases the slot
   * @throws the reason of the signal
   */
  admit(teamId: number, signal: AbortSignal): Promise<() => void>;
}

interface JobActivityDependencies {
  readonly pool: Pool;
  readonly handlers: readonly JobHandler[];
  readonly slots: JobSlots;
  readonly settings: Settings;
  readonly logger: Logger;
  /** Temporal's context of the running activity by default; tests bring their own. */
  readonly context?: () => ActivityContext;
}

export type JobActivities = ReturnType<typeof createJobActivities>;

/** How often a worker reads whether a job was withdrawn, in milliseconds. */
const withdrawalPollMs = 500;

/** Nothing waits for the job any more. */
class JobWithdrawn extends Error {
  override readonly name = 'JobWithdrawn';
}

/** Aborts when a job was withdrawn. `stop` ends the reads. */
function watchWithdrawal(pool: Pool, jobId: string): { readonly signal: AbortSignal; stop(): void } {
  const withdrawn = new AbortController();
  const timer = setInterval(() => {
    isWithdrawn(pool, jobId).then(
      (is) => {
        if (is) withdrawn.abort(new JobWithdrawn('The job was withdrawn.'));
      },
      // The next read says it.
      () => undefined,
    );
  }, withdrawalPollMs);
  return {
    signal: withdrawn.signal,
    stop: () => {
      clearInterval(timer);
    },
  };
}

/** The activity of the workflows that answer what a person has asked: those of workflows/job.ts. */
export function createJobActivities(dependencies: JobActivityDependencies) {
  const { pool, handlers, slots, settings, logger, context } = dependencies;
  const handlerOfKind = new Map(handlers.map((handler) => [handler.kind, handler]));
  return wrapActivities(
    { logger, context, heartbeatTimeoutMs: settings.EXPORTD_HEARTBEAT_TIMEOUT },
    {
      /**
       * Does a stored job and stores its answer, which may name rows or what a bucket has, so it stays out of the history. An
       * error is an answer too: the person can ask again. Ends when the job is withdrawn, and when its time is over.
       */
      doJob: async ({ signal }, { job_id }: { readonly job_id: string }): Promise<void> => {
        const job = await beginJob(pool, job_id);
        if (!job) return;
        const handler = handlerOfKind.get(job.kind);
        if (!handler) throw new Error(`Jobs of the kind ${job.kind} have no handler.`);
        const timeoutMs = handler.timeoutMs(settings);
        const deadline = AbortSignal.timeout(timeoutMs);
        const withdrawal = watchWithdrawal(pool, job_id);
        const ended = AbortSignal.any([signal, deadline, withdrawal.signal]);
        const outcomeOf = (error: unknown): JobOutcome => {
          if (signal.aborted) throw error;
          if (withdrawal.signal.aborted)
            throw ApplicationFailure.create({
              type: 'JobWithdrawn',
              message: 'Nothing waits for the answer any more.',
              nonRetryable: true,
              // Expected, so that the SDK logs nothing.
              category: ApplicationFailureCategory.BENIGN,
            });
          if (deadline.aborted)
            return {
              error: `No answer within ${boundText({ max: timeoutMs, unit: 'ms' })}, the time that it may take: its store is slow, or has much to read.`,
            };
          const { type, message } = classifyError(error);
          if (type === 'UnexpectedError') logger.error({ stack: stackFramesOf(error) }, message);
          return { error: message };
        };
        try {
          const outcome = await inSlot(slots, job.team_id, ended, () => handler.handle(job, ended)).then(
            (result): JobOutcome => ({ result }),
            outcomeOf,
          );
          await finishJob(pool, job_id, outcome);
        } finally {
          withdrawal.stop();
          // It counts until here.
          await deleteWithdrawn(pool, job_id);
        }
      },
    },
  );
}

/** Does work in a slot of a project. @throws its error, or the reason of the signal while it waits */
async function inSlot<Result>(
  slots: JobSlots,
  teamId: number,
  signal: AbortSignal,
  work: () => Promise<Result>,
): Promise<Result> {
  const release = await slots.admit(teamId, signal);
  try {
    return await work();
  } finally {
    release();
  }
}
