import type { FastifyReply, FastifyRequest } from 'fastify';
import type { DecidedDifference } from '../../domain/difference.ts';
import { listJobs } from '../../jobs/jobs.ts';
import { fieldChanges } from '../../journal/audit.ts';
import { type Difference, differenceJob } from '../../decisions/difference_job.ts';
import { ApiError, invalid, retryAfter } from '../api_error.ts';
import { requireBatchExport } from '../batch_exports/read_model.ts';
import { acceptedDetail, submitCommand } from '../command_service.ts';
import { startJob, waitForJob } from '../jobs/answer_job.ts';
import { callerOf } from '../plugins/authentication.ts';
import { disconnectSignal, readsExports, teamOf, writesExports } from '../requests.ts';
import type { ProjectRoutes, RouteContext } from '../route_context.ts';
import { commandResponses, errorResponses } from '../schemas.ts';
import { intervalPath } from './detail_schema.ts';
import { differenceBody, differenceSchema } from './difference_schema.ts';
import { readIntervalAt } from './interval_detail.ts';
import { intervalSchema, type IntervalResponse } from './schema.ts';

const retryAfterSeconds = 5;
const tooMany = (): ApiError =>
  new ApiError(
    429,
    'too_many_differences',
    'Other differences are still being read. Repeat the request when they are.',
    retryAfter(retryAfterSeconds),
  );

/** An interval with files, and how they differ. */
interface FoundDifference extends Difference {
  readonly interval: IntervalResponse;
  readonly run_id: string;
}

/**
 * Lets a worker compare the files of an interval with the source now. A request that is repeated while it does waits for the same
 * answer.
 * @throws ApiError 404, 409 without files, 429, 503
 */
async function findDifference(
  context: RouteContext,
  request: FastifyRequest,
  reply: FastifyReply,
  { batch_export_id, start }: { readonly batch_export_id: string; readonly start: string },
): Promise<FoundDifference> {
  const { pool, settings } = context;
  const maxMs = settings.EXPORTD_JOB_WAIT_TIMEOUT;
  const { project_id: team_id, actor_id: user_id } = callerOf(request);
  await requireBatchExport(pool, team_id, batch_export_id);
  const interval = await readIntervalAt(pool, batch_export_id, start);
  const { manifest_run_id: run_id } = interval;
  if (run_id === null) throw new ApiError(409, 'conflict', 'The interval has no files yet.');
  const signal = disconnectSignal(reply);
  const asked = { target: batch_export_id, parameters: { run_id } };
  const [newest] = await listJobs(pool, differenceJob, asked);
  const started =
    newest?.status === 'pending'
      ? { id: newest.id, timeoutMs: maxMs }
      : await startJob(
          context,
          differenceJob,
          { team_id, user_id, ...asked },
          { busy: tooMany, undone: 'Nothing was compared.', retryAfterSeconds },
        );
  const job = await waitForJob(context, differenceJob, started, { maxMs, signal });
  if (job?.result) return { ...job.result, interval, run_id };
  if (typeof job?.error === 'string') throw new ApiError(409, 'conflict', job.error);
  throw new ApiError(
    503,
    'difference_not_read',
    job?.status === 'pending'
      ? 'A worker still compares the files with the source. Repeat the request.'
      : 'No worker has compared the files with the source. Check that the workers run. Retry later.',
    retryAfter(retryAfterSeconds),
  );
}

/** Read how the files of an interval differ from the source, and decide about it. */
export const differenceRoutes: ProjectRoutes = (app, context) => {
  const { pool } = context;

  app.get(
    '/batch_exports/:batch_export_id/intervals/:start/difference',
    {
      ...readsExports,
      schema: {
        summary: 'Retrieve the difference of an interval',
        description: 'A worker reads which rows the files have and the source lacks now.',
        params: intervalPath,
        response: { 200: differenceSchema, ...errorResponses },
      },
    },
    async (request, reply) => {
      const found = await findDifference(context, request, reply, request.params);
      const { data_interval_start, data_interval_end, decision } = found.interval;
      const { missing_rows, is_exact, last_inserted_at } = found;
      const rows = [...found.rows];
      return {
        data_interval_start,
        data_interval_end,
        missing_rows,
        is_exact,
        rows,
        last_inserted_at,
        decision,
      };
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
      const found = await findDifference(context, request, reply, { batch_export_id, start });
      const { run_id, missing, missing_rows } = found;
      const { data_interval_start, data_interval_end } = found.interval;
      const body: Omit<DecidedDifference, 'findings'> = {
        decision,
        reason,
        user_id: callerOf(request).actor_id,
        run_id,
        rows: missing_rows,
        missing,
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
