import type { Settings } from '../src/config/settings.ts';
import { classifyError, stackFramesOf } from '../src/failures/classify_error.ts';
import { finishJob, type JobHandler, type JobOutcome, readJob } from '../src/jobs/jobs.ts';
import type { Pool } from '../src/journal/database.ts';
import type { Logger } from '../src/telemetry/logger.ts';
import { wrapActivities, type ActivityContext } from './run_step.ts';

interface JobActivityDependencies {
  readonly pool: Pool;
  readonly handlers: readonly JobHandler[];
  readonly settings: Pick<Settings, 'EXPORTD_HEARTBEAT_TIMEOUT'>;
  readonly logger: Logger;
  /** Temporal's context of the running activity by default; tests bring their own. */
  readonly context?: () => ActivityContext;
}

export type JobActivities = ReturnType<typeof createJobActivities>;

/** The activity of all workflows in workflows/jobs.ts that answer what a person has asked. */
export function createJobActivities({ pool, handlers, settings, logger, context }: JobActivityDependencies) {
  const handlerOfKind = new Map(handlers.map(({ kind, handle }) => [kind, handle]));
  return wrapActivities(
    { logger, context, heartbeatTimeoutMs: settings.EXPORTD_HEARTBEAT_TIMEOUT },
    {
      /**
       * Does a stored job and stores its answer, which may name rows or what a bucket has, so it stays out of the history. An
       * error is an answer too: the person can ask again.
       */
      doJob: async ({ signal }, { job_id }: { readonly job_id: string }): Promise<void> => {
        const job = await readJob(pool, job_id);
        if (job?.finished_at !== null) return;
        const handle = handlerOfKind.get(job.kind);
        if (!handle) throw new Error(`Jobs of the kind ${job.kind} have no handler.`);
        const outcome = await handle(job, signal).then(
          (result): JobOutcome => ({ result }),
          (error: unknown): JobOutcome => {
            if (signal.aborted) throw error;
            const { type, message } = classifyError(error);
            if (type === 'UnexpectedError') logger.error({ stack: stackFramesOf(error) }, message);
            return { error: message };
          },
        );
        await finishJob(pool, job_id, outcome);
      },
    },
  );
}
