import type { FastifyReply, FastifyRequest } from 'fastify';
import type { DecidedDifference } from '../../domain/difference.ts';
import type { JobRequest } from '../../jobs/jobs.ts';
import { fieldChanges } from '../../journal/audit.ts';
import { type Difference, differenceJob, type DifferenceParameters } from '../../decisions/difference_job.ts';
import { ApiError, invalid, retryAfter } from '../api_error.ts';
import { requireBatchExport } from '../batch_exports/read_model.ts';
import { acceptedDetail, submitCommand } from '../command_service.ts';
import { answerWithJob, joinJob, type JobOperation, waitForJob } from '../jobs/answer_job.ts';
import { jobSchema } from '../jobs/schema.ts';
import { callerOf } from '../plugins/authentication.ts';
import { disconnectSignal, readsExports, teamOf, writesExports } from '../requests.ts';
import type { ProjectRoutes, RouteContext } from '../route_context.ts';
import { commandResponses, errorResponses } from '../schemas.ts';
import { intervalPath } from './detail_schema.ts';
import { differenceBody, type DifferenceResponse, differenceSchema } from './difference_schema.ts';
import { readIntervalAt } from './interval_detail.ts';
import { intervalSchema } from './schema.ts';

const retryAfterSeconds = 5;
const tooMany = (): ApiError =>
  new ApiError(
    429,
    'too_many_differences',
    'Other differences are still being read. Repeat the request when they are.',
    retryAfter(retryAfterSeconds),
  );

export const differenceOperation: JobOperation<DifferenceParameters, Difference, DifferenceResponse> = {
  kind: differenceJob,
  access: readsExports,
  toResponse: async ({ missing_rows, is_exact, rows, last_inserted_at }, { target, parameters }, pool) => {
    const interval = await readIntervalAt(pool, target, parameters.start);
    const { data_interval_start, data_interval_end, decision } = interval;
    return {
      data_interval_start,
      data_interval_end,
      missing_rows,
      is_exact,
      rows: [...rows],
      last_inserted_at,
      decision,
    };
  },
};

const notRead = (detail: string): ApiError =>
  new ApiError(503, 'difference_not_read', detail, retryAfter(retryAfterSeconds));

const failures = {
  busy: tooMany,
  undone: 'Nothing was compared.',
  retryAfterSeconds,
  failed: (reason: string) => new ApiError(409, 'conflict', reason),
  late: () =>
    notRead('No worker has compared the files with the source. Check that the workers run. Retry later.'),
};

/** An interval with files, as jobs compare it. @throws ApiError 404, 409 without files */
async function requireFiles(
  { pool }: RouteContext,
  request: FastifyRequest,
  { batch_export_id, start }: { readonly batch_export_id: string; readonly start: string },
) {
  await requireBatchExport(pool, teamOf(request), batch_export_id);
  const interval = await readIntervalAt(pool, batch_export_id, start);
  const { manifest_run_id: run_id } = interval;
  if (run_id === null) throw new ApiError(409, 'conflict', 'The interval has no files yet.');
  const asked = {
    target: batch_export_id,
    parameters: { run_id, start: interval.data_interval_start },
  };
  return { interval, run_id, asked };
}

/**
 * How the files of an interval differ from the source now, for a decision about it.
 * @throws ApiError 409, 429, 503 also while a worker still compares them
 */
async function readDifference(
  context: RouteContext,
  request: FastifyRequest,
  reply: FastifyReply,
  asked: Pick<JobRequest<DifferenceParameters>, 'target' | 'parameters'>,
): Promise<Difference> {
  const { project_id: team_id, actor_id: user_id } = callerOf(request);
  const started = await joinJob(context, differenceJob, { ...asked, team_id, user_id }, failures);
  const job = await waitForJob(context, differenceJob, started, {
    maxMs: context.settings.EXPORTD_JOB_WAIT_TIMEOUT,
    signal: disconnectSignal(reply),
  });
  if (job?.result) return job.result;
  if (typeof job?.error === 'string') throw failures.failed(job.error);
  throw job?.status === 'pending'
    ? notRead('A worker still compares the files with the source. Repeat the request.')
    : failures.late();
}

/** Read how the files of an interval differ from the source, and decide about it. */
export const differenceRoutes: ProjectRoutes = (app, context) => {
  const { pool } = context;

  app.get(
    '/batch_exports/:batch_export_id/intervals/:start/difference',
    {
      ...differenceOperation.access,
      schema: {
        summary: 'Retrieve the difference of an interval',
        description: 'A worker reads which rows the files have and the source lacks now.',
        params: intervalPath,
        response: { 200: differenceSchema, 202: jobSchema, ...errorResponses },
      },
    },
    async (request, reply) => {
      const { asked } = await requireFiles(context, request, request.params);
      const signal = disconnectSignal(reply);
      return answerWithJob(context, { request, reply, signal }, differenceOperation, asked, failures);
    },
  );

  app.post(
    '/batch_exports/:batch_export_id/intervals/:start/difference',
    {
      ...writesExports,
      schema: {
        summary: 'Decide about the difference of an interval',
        description:
          'Keeps the rows that its files have and the source lacks, or exports the interval again without them. Either ends ' +
          'the alarm; a later comparison that finds the same rows raises none. Kept rows can be removed later.',
        params: intervalPath,
        body: differenceBody,
        response: { 200: intervalSchema, ...commandResponses },
      },
    },
    async (request, reply) => {
      const { batch_export_id, start } = request.params;
      const { decision, reason, rows } = request.body;
      if (decision === 'remove' && rows === undefined)
        throw invalid('Say how many rows are removed, as the difference of the interval says.', 'rows');
      const { interval, run_id, asked } = await requireFiles(context, request, request.params);
      const { missing, missing_hashes, missing_rows } = await readDifference(context, request, reply, asked);
      const { data_interval_start, data_interval_end } = interval;
      const body: Omit<DecidedDifference, 'findings'> = {
        decision,
        reason,
        user_id: callerOf(request).actor_id,
        run_id,
        rows: missing_rows,
        missing,
        missing_hashes,
      };
      const submitted = await submitCommand(context, request, 'decideDifference', async (connection) => {
        await requireBatchExport(connection, teamOf(request), batch_export_id);
        if (rows !== undefined && rows !== missing_rows)
          throw new ApiError(
            409,
            'conflict',
            `The source lacks ${missing_rows} rows of the files now, not ${rows}. Read the difference again.`,
            { attr: 'rows' },
          );
        return { batch_export_id, body: { start: data_interval_start, end: data_interval_end, ...body } };
      });
      request.changedFields = fieldChanges({}, { decision, reason, rows: missing_rows });
      if (!submitted.decided) return reply.code(202).send(acceptedDetail);
      return readIntervalAt(pool, batch_export_id, start);
    },
  );
};
