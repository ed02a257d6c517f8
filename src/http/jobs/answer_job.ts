/**
 * How requests get what a worker does for them: a job is started, and the request waits for it. A job that takes longer than
 * that is answered with 202 and its `Location`, where routes.ts reads it.
 */
import { setTimeout as wait } from 'node:timers/promises';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Settings } from '../../config/settings.ts';
import {
  findJob,
  type Job,
  type JobKind,
  type JobRequest,
  jobTimeoutMs,
  listJobs,
  requestJob,
  withdrawJob,
} from '../../jobs/jobs.ts';
import type { Pool } from '../../journal/database.ts';
import type { Logger } from '../../telemetry/logger.ts';
import type { JobClient } from '../../temporal/clients/job_client.ts';
import { ApiError, retryAfter, temporalUnreachable } from '../api_error.ts';
import { callerOf } from '../plugins/authentication.ts';
import type { Scope } from '../scopes.ts';
import type { JobResponse } from './schema.ts';
import { projectUrl } from '../request_urls.ts';

/** What requesting a job needs. */
export interface JobService {
  readonly pool: Pool;
  readonly jobs: JobClient;
  readonly settings: Settings;
  readonly logger: Logger;
}

/** An operation of the API that a job carries out. */
export interface JobOperation<
  Parameters extends object = object,
  Result extends object = object,
  Response extends object = object,
> {
  readonly kind: JobKind<Parameters, Result>;
  /** The scope of the operation, and of reading its job. */
  readonly access: { readonly config: { readonly scope: Scope } };
  /** Whether a job goes on when its request disconnects: it writes what should not be left half done. */
  readonly outlivesRequest?: boolean;
  /** The body of the response, with what else the control database has of its subject. */
  toResponse(
    result: Result,
    job: Pick<Job<Parameters>, 'target' | 'parameters'>,
    pool: Pool,
  ): Response | Promise<Response>;
}

/** What a client is told when a job cannot be started. */
interface Refusals {
  /** Too many others are unfinished. Absent for kinds without a limit. */
  readonly busy?: () => ApiError;
  /** What has not happened, as a sentence. */
  readonly undone: string;
  readonly retryAfterSeconds: number;
}

/** What a client is told instead of a result. */
interface Failures extends Refusals {
  /** The job has failed, for this reason. */
  readonly failed: (reason: string) => ApiError;
  /** No worker has finished it in its time. */
  readonly late: () => ApiError;
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

/**
 * Waits for the pending job of an equal request, or starts one. What a kind keeps is an answer to all requests for it.
 * @throws ApiError as `startJob`
 */
async function joinJob<Parameters extends object, Result extends object>(
  service: JobService,
  kind: JobKind<Parameters, Result>,
  request: JobRequest<Parameters>,
  refusals: Refusals,
): Promise<StartedJob> {
  const [newest] = await listJobs(service.pool, kind, request);
  return newest?.status === 'pending'
    ? { id: newest.id, timeoutMs: jobTimeoutMs(kind, service.settings) }
    : startJob(service, kind, request, refusals);
}

/** How often a request reads whether its job is finished, in milliseconds. */
const pollMs = 100;

/** How long a request waits for its job. */
interface Wait {
  readonly maxMs: number;
  /** Ends the wait. */
  readonly signal: AbortSignal;
}

/**
 * Waits until a job has ended, but no longer than there may be an answer.
 * @returns the job as it is then; undefined if it was withdrawn
 * @throws the reason of the signal
 */
export async function waitForJob<Parameters extends object, Result extends object>(
  { pool }: Pick<JobService, 'pool'>,
  kind: JobKind<Parameters, Result>,
  { id, timeoutMs }: StartedJob,
  { maxMs, signal }: Wait,
): Promise<Job<Parameters, Result> | undefined> {
  const deadline = performance.now() + Math.min(timeoutMs, maxMs);
  for (;;) {
    const found = await findJob(pool, kind, id);
    if (found?.status !== 'pending' || performance.now() > deadline) return found;
    await wait(pollMs, undefined, { signal });
  }
}

/**
 * Has a worker do a job, and waits for it. A request that disconnects withdraws it, unless it `outlivesRequest` or is kept: one
 * that is kept is joined by equal requests.
 * @returns its result as a body; the job itself, with 202 and its `Location`, if it takes longer than
 *   EXPORTD_JOB_WAIT_TIMEOUT
 * @throws ApiError of `failures`, or 503 without Temporal
 */
export async function answerWithJob<
  Parameters extends object,
  Result extends object,
  Response extends object,
>(
  service: JobService,
  { request, reply, signal }: { request: FastifyRequest; reply: FastifyReply; signal: AbortSignal },
  operation: JobOperation<Parameters, Result, Response>,
  subject: Omit<JobRequest<Parameters>, 'team_id' | 'user_id'>,
  failures: Failures,
): Promise<Response | JobResponse> {
  const { pool, settings } = service;
  const { kind, outlivesRequest = false } = operation;
  const { project_id: team_id, actor_id: user_id } = callerOf(request);
  const start = kind.isKept ? joinJob : startJob;
  const started = await start(service, kind, { ...subject, team_id, user_id }, failures);
  const maxMs = settings.EXPORTD_JOB_WAIT_TIMEOUT;
  let continues = outlivesRequest || kind.isKept;
  try {
    const job = await waitForJob(service, kind, started, { maxMs, signal });
    const isLate = job?.status === 'pending' && started.timeoutMs > maxMs;
    continues = isLate || kind.isKept;
    if (isLate) {
      referToJob(request, reply, settings, job.id);
      return await toJobResponse(operation, job, pool);
    }
    if (job?.result) return await operation.toResponse(job.result, job, pool);
    throw typeof job?.error === 'string' ? failures.failed(job.error) : failures.late();
  } finally {
    if (!continues) await withdrawJob(pool, started.id);
  }
}

/** Responds with 202, and says where a job is read. */
export function referToJob(
  request: FastifyRequest,
  reply: FastifyReply,
  settings: Settings,
  jobId: string,
): void {
  void reply.code(202).header('location', projectUrl(request, settings, `/jobs/${jobId}/`));
}

/** Why a job has failed, for users; null if it has not. */
export const errorOfJob = ({ status, error }: Job): string | null =>
  status === 'failed' ? (error ?? 'No worker has finished it in time. Check that the workers run.') : null;

/** A job of an operation as clients poll it. */
export const toJobResponse = async <Parameters extends object, Result extends object>(
  operation: JobOperation<Parameters, Result>,
  job: Job<Parameters, Result>,
  pool: Pool,
): Promise<JobResponse> => ({
  id: job.id,
  kind: job.kind,
  status: job.status,
  result: job.result && { ...(await operation.toResponse(job.result, job, pool)) },
  error: errorOfJob(job),
  created_at: job.created_at,
  finished_at: job.finished_at,
});

const testRetrySeconds = 5;

/** What a client is told of a test that was not made: what has not happened, and that no worker has made it in time. */
export const testFailures = (undone: string, late: string): Failures => {
  const notTested = (reason: string): ApiError =>
    new ApiError(503, 'not_tested', `${reason} Retry later.`, retryAfter(testRetrySeconds));
  return {
    undone,
    retryAfterSeconds: testRetrySeconds,
    failed: notTested,
    late: () => notTested(`${late} Check that the workers run.`),
  };
};
