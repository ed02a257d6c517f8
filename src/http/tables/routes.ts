import type { FastifyReply, FastifyRequest } from 'fastify';
import type { TableCheck } from '../../table_commits/check_table.ts';
import {
  type HistoryParameters,
  tableCheckJob,
  tableDescriptionJob,
  tableHistoryJob,
  type TableHistory,
  tableRepairJob,
} from '../../table_commits/table_jobs.ts';
import type { TableDescription } from '../../tables/describe.ts';
import type { TableRepairOutcome } from '../../tables/repair.ts';
import { ApiError, invalid, retryAfter } from '../api_error.ts';
import { requireBatchExport } from '../batch_exports/read_model.ts';
import { answerWithJob, type JobOperation } from '../jobs/answer_job.ts';
import { type JobResponse, jobSchema } from '../jobs/schema.ts';
import { disconnectSignal, readsExports, teamOf, writesExports } from '../requests.ts';
import type { ProjectRoutes, RouteContext } from '../route_context.ts';
import { emptyBody, errorResponses } from '../schemas.ts';
import {
  type TableCheckResponse,
  tableCheckSchema,
  tableHistoryQuery,
  type TableHistoryResponse,
  tableHistorySchema,
  tablePath,
  type TableRepairResponse,
  tableRepairSchema,
  type TableResponse,
  tableSchema,
} from './schema.ts';

const retryAfterSeconds = 5;

const tooMany = (): ApiError =>
  new ApiError(
    429,
    'too_many_table_requests',
    'Other requests about tables are still running. Repeat the request when they have ended.',
    retryAfter(retryAfterSeconds),
  );

const tableDescription: JobOperation<object, TableDescription, TableResponse> = {
  kind: tableDescriptionJob,
  access: readsExports,
  toResponse: ({ columns, partition_columns, ...found }) => ({
    ...found,
    columns: [...columns],
    partition_columns: [...partition_columns],
  }),
};

const tableHistory: JobOperation<HistoryParameters, TableHistory, TableHistoryResponse> = {
  kind: tableHistoryJob,
  access: readsExports,
  toResponse: ({ versions }, { parameters: { limit } }) => {
    const last = versions.at(-1);
    return {
      next_before: last && versions.length === limit && last.version > 0 ? last.version : null,
      results: versions.map(({ interval, adds, removes, ...version }) => ({
        ...version,
        data_interval_start: interval?.start ?? null,
        data_interval_end: interval?.end ?? null,
        files_added: adds,
        files_removed: removes,
      })),
    };
  },
};

const tableCheck: JobOperation<object, TableCheck, TableCheckResponse> = {
  kind: tableCheckJob,
  access: writesExports,
  toResponse: ({ findings, ...check }) => ({
    ...check,
    findings: findings.map(({ kind, object, count, detail, start, end }) => ({
      kind,
      object,
      count,
      detail,
      data_interval_start: start,
      data_interval_end: end,
    })),
  }),
};

const tableRepair: JobOperation<object, TableRepairOutcome, TableRepairResponse> = {
  kind: tableRepairJob,
  access: writesExports,
  outlivesRequest: true,
  toResponse: ({ version, adds, removes }) => ({ version, files_added: adds, files_removed: removes }),
};

/** What is asked of tables. */
export const tableOperations: readonly JobOperation[] = [
  tableDescription,
  tableHistory,
  tableCheck,
  tableRepair,
];

/**
 * Lets a worker read the table of an export, since only workers decrypt what that requires.
 * @throws ApiError 404, 400 without a table, or when the worker found why it cannot; 429, 503
 */
async function askWorker<Parameters extends object, Result extends object, Response extends object>(
  context: RouteContext,
  request: FastifyRequest,
  reply: FastifyReply,
  operation: JobOperation<Parameters, Result, Response>,
  { batch_export_id, parameters }: { readonly batch_export_id: string; readonly parameters: Parameters },
): Promise<Response | JobResponse> {
  const { config } = await requireBatchExport(context.pool, teamOf(request), batch_export_id);
  if (typeof config.table_format !== 'string')
    throw invalid('The batch export has no table: table_format of its destination is null.', null);
  const signal = disconnectSignal(reply);
  return answerWithJob(
    context,
    { request, reply, signal },
    operation,
    { target: batch_export_id, parameters },
    {
      busy: tooMany,
      undone: 'Nothing was read.',
      retryAfterSeconds,
      failed: (reason) => new ApiError(409, 'table_unavailable', reason),
      late: () =>
        new ApiError(
          503,
          'table_not_read',
          'No worker has read the table in time. Check that the workers run, or use "exportd verify". Retry later.',
          retryAfter(retryAfterSeconds),
        ),
    },
  );
}

/** Describe the table of an export, list its versions, check and repair it. */
export const tableRoutes: ProjectRoutes = (app, context) => {
  app.get(
    '/batch_exports/:batch_export_id/table',
    {
      ...tableDescription.access,
      schema: {
        summary: 'Retrieve the table of a batch export',
        description: 'What the log of the table says: its version, files, rows, columns and protocol.',
        params: tablePath,
        response: { 200: tableSchema, 202: jobSchema, ...errorResponses },
      },
    },
    (request, reply) => {
      const { batch_export_id } = request.params;
      return askWorker(context, request, reply, tableDescription, { batch_export_id, parameters: {} });
    },
  );

  app.get(
    '/batch_exports/:batch_export_id/table/history',
    {
      ...tableHistory.access,
      schema: {
        summary: 'List the versions of the table of a batch export',
        description:
          'Newest first: what wrote a version, for which interval, and how many files came and went.',
        params: tablePath,
        querystring: tableHistoryQuery,
        response: { 200: tableHistorySchema, 202: jobSchema, ...errorResponses },
      },
    },
    (request, reply) => {
      const { batch_export_id } = request.params;
      const { limit, before = null } = request.query;
      return askWorker(context, request, reply, tableHistory, {
        batch_export_id,
        parameters: { before, limit },
      });
    },
  );

  app.post(
    '/batch_exports/:batch_export_id/table/check',
    {
      ...tableCheck.access,
      schema: {
        summary: 'Check the table of a batch export',
        description:
          'Compares the log of the table with the current manifests, the objects and the journal. What differs becomes the condition of the export until it is repaired.',
        params: tablePath,
        body: emptyBody.optional(),
        response: { 200: tableCheckSchema, 202: jobSchema, ...errorResponses },
      },
    },
    (request, reply) => {
      const { batch_export_id } = request.params;
      return askWorker(context, request, reply, tableCheck, { batch_export_id, parameters: {} });
    },
  );

  app.post(
    '/batch_exports/:batch_export_id/table/repair',
    {
      ...tableRepair.access,
      schema: {
        summary: 'Repair the table of a batch export',
        description:
          'Writes one version that makes the table what the current manifests say. Intervals whose runs are active stay as they are.',
        params: tablePath,
        body: emptyBody.optional(),
        response: { 200: tableRepairSchema, 202: jobSchema, ...errorResponses },
      },
    },
    (request, reply) => {
      const { batch_export_id } = request.params;
      return askWorker(context, request, reply, tableRepair, { batch_export_id, parameters: {} });
    },
  );
};
