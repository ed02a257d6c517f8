import { setTimeout as wait } from 'node:timers/promises';
import {
  findJob,
  type JobKind,
  type JobOutcome,
  type JobRequest,
  requestJob,
  withdrawJob,
} from '../jobs/jobs.ts';
import type { Settings } from '../config/settings.ts';
import type { Pool } from '../journal/database.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { JobClient } from '../temporal/clients/job_client.ts';
import { ApiError, retryAfter, temporalUnreachable } from './api_error.ts';

/** What requesting a job needs. */
export interface JobService {
  readonly pool: Pool;
  readonly jobs: JobClient;
  readonly settings: Settings;
  readonly logger: Logger;
}

/** What a client is told when a job cannot be started. */
interface Refusals {
  /** Too many others are unfinished. Absent for kinds without a limit. */
  readonly busy?: () => ApiError;
  /** What has not happened, as a sentence. */
  readonly undone: string;
  readonly retryAfterSeconds: number;
}

/** A job whose workflow was started. */
interface StartedJob {
  readonly id: string;
  /** How long it may take until there is no answer any more. */
  readonly timeoutMs: number;
}

/** Stores a job and starts its workflow. @throws ApiError `busy()`, or 503 without Temporal */
export async function startJob<Parameters extends object, Result extends object>(
  service: JobService,
  kind: JobKind<Parameters, Result>,
  request: JobRequest<Parameters>,
  { busy, undone, retryAfterSeconds }: Refusals,
): Promise<StartedJob> {
  const { pool, jobs, logger } = service;
  const id = await requestJob(service, kind, request);
  if (id === null) throw busy?.() ?? new RangeError(`Jobs of the kind ${kind.name} have no limit.`);
  try {
    return { id, timeoutMs: await jobs.start(kind, { id, team_id: request.team_id }) };
  } catch (error) {
    logger.warn({ err: error, job_id: id, kind: kind.name }, 'Could not start a job.');
    await withdrawJob(pool, id);
    throw temporalUnreachable(undone, retryAfterSeconds);
  }
}

/** How often a request reads whether its job is finished, in milliseconds. */
const pollMs = 100;

/** How long a request waits for its job, and what happens when it no longer does. */
interface Wait {
  /** By default as long as there may be an answer. */
  readonly maxMs?: number;
  /** Ends the wait. */
  readonly signal: AbortSignal;
  /** Whether a job that has not finished goes on, instead of being withdrawn. */
  readonly continues?: boolean;
}

/**
 * Waits for the answer to a job that is not kept, and deletes it.
 * @returns undefined if no worker has answered in time
 */
export async function answerTo<Parameters extends object, Result extends object>(
  { pool }: JobService,
  kind: JobKind<Parameters, Result>,
  { id, timeoutMs }: StartedJob,
  { maxMs = Infinity, signal, continues = false }: Wait,
): Promise<JobOutcome<Result> | undefined> {
  const deadline = performance.now() + Math.min(timeoutMs, maxMs);
  let isFinished = false;
  try {
    for (;;) {
      const found = await findJob(pool, kind, id);
      isFinished = found === undefined || found.finished_at !== null;
      if (found?.result) return { result: found.result };
      if (typeof found?.error === 'string') return { error: found.error };
      if (isFinished || performance.now() > deadline) return undefined;
      await wait(pollMs, undefined, { signal });
    }
  } finally {
    if (!kind.isKept && (isFinished || !continues)) await withdrawJob(pool, id);
  }
}

/** What a test that was not made says, beside `Refusals`. */
interface Untested {
  readonly undone: string;
  /** No worker has answered in time. */
  readonly late: string;
}

const testRetrySeconds = 5;

/**
 * Has a worker test something, since only workers decrypt its secrets. Stores nothing permanently.
 * @throws ApiError 503 when Temporal cannot be reached, or no worker made the test in time
 */
export async function testOnWorker<Parameters extends object, Result extends object>(
  service: JobService,
  kind: JobKind<Parameters, Result>,
  request: JobRequest<Parameters>,
  { undone, late, signal }: Untested & { readonly signal: AbortSignal },
): Promise<Result> {
  const started = await startJob(service, kind, request, { undone, retryAfterSeconds: testRetrySeconds });
  const outcome = await answerTo(service, kind, started, { signal });
  if (outcome && 'result' in outcome) return outcome.result;
  const reason = outcome?.error ?? `${late} Check that the workers run.`;
  throw new ApiError(503, 'not_tested', `${reason} Retry later.`, retryAfter(testRetrySeconds));
}
