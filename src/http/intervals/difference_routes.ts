import type { FastifyRequest } from 'fastify';
import { fieldChanges } from '../../journal/audit.ts';
import {
  type DecidedRows,
  type DecisionParameters,
  type Difference,
  differenceDecisionJob,
  differenceJob,
  type DifferenceParameters,
} from '../../decisions/difference_job.ts';
import { ApiError, invalid, retryAfter } from '../api_error.ts';
import { requireBatchExport } from '../batch_exports/read_model.ts';
import { answerWithJob, type JobOperation } from '../jobs/answer_job.ts';
import { jobSchema } from '../jobs/schema.ts';
import { disconnectSignal, readsExports, teamOf, writesExports } from '../requests.ts';
import type { ProjectRoutes, RouteContext } from '../route_context.ts';
import { errorResponses } from '../schemas.ts';
import { intervalPath } from './detail_schema.ts';
import { differenceBody, type DifferenceResponse, differenceSchema } from './difference_schema.ts';
import { readIntervalAt } from './interval_detail.ts';
import { type IntervalResponse, intervalSchema } from './schema.ts';

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

export const decisionOperation: JobOperation<DecisionParameters, DecidedRows, IntervalResponse> = {
  kind: differenceDecisionJob,
  access: writesExports,
  outlivesRequest: true,
  toResponse: (_, { target, parameters }, pool) => readIntervalAt(pool, target, parameters.start),
};

const failures = {
  busy: tooMany,
  undone: 'Nothing was compared.',
  retryAfterSeconds,
  failed: (reason: string) => new ApiError(409, 'conflict', reason),
  late: () =>
    new ApiError(
      503,
      'difference_not_read',
      'No worker has compared the files with the source. Check that the workers run. Retry later.',
      retryAfter(retryAfterSeconds),
    ),
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
  return { interval, asked };
}

/** Read how the files of an interval differ from the source, and decide about it. */
export const differenceRoutes: ProjectRoutes = (app, context) => {
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
      ...decisionOperation.access,
      schema: {
        summary: 'Decide about the difference of an interval',
        description:
          'Keeps the rows that its files have and the source lacks, or exports the interval again without them. Either ends ' +
          'the alarm; a later comparison that finds the same rows raises none. Kept rows can be removed later.',
        params: intervalPath,
        body: differenceBody,
        response: { 200: intervalSchema, 202: jobSchema, ...errorResponses },
      },
    },
    async (request, reply) => {
      const { decision, reason, rows } = request.body;
      if (decision === 'remove' && rows === undefined)
        throw invalid('Say how many rows are removed, as the difference of the interval says.', 'rows');
      const { interval, asked } = await requireFiles(context, request, request.params);
      const parameters = {
        ...asked.parameters,
        end: interval.data_interval_end,
        decision,
        reason,
        rows: rows ?? null,
      };
      const signal = disconnectSignal(reply);
      const answer = await answerWithJob(
        context,
        { request, reply, signal },
        decisionOperation,
        { ...asked, parameters },
        failures,
      );
      const decided = 'decision' in answer ? answer.decision?.rows : rows;
      request.changedFields = fieldChanges({}, { decision, reason, rows: decided });
      return answer;
    },
  );
};
