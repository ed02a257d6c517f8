import type { FastifyReply, FastifyRequest } from 'fastify';
import type { JobKind } from '../../jobs/jobs.ts';
import {
  tableCheckJob,
  tableDescriptionJob,
  tableHistoryJob,
  tableRepairJob,
} from '../../table_commits/table_jobs.ts';
import { ApiError, invalid, retryAfter } from '../api_error.ts';
import { callerOf } from '../plugins/authentication.ts';
import { requireBatchExport } from '../batch_exports/read_model.ts';
import { answerTo, startJob } from '../jobs.ts';
import { disconnectSignal, readsExports, writesExports } from '../requests.ts';
import type { ProjectRoutes, RouteContext } from '../route_context.ts';
import { emptyBody, errorResponses } from '../schemas.ts';
import {
  tableCheckSchema,
  tableHistoryQuery,
  tableHistorySchema,
  tablePath,
  tableRepairSchema,
  tableSchema,
} from './schema.ts';

const retryAfterSeconds = 5;
/** How long a request waits for a worker, in milliseconds. */
const maxWaitMs = 50_000;

/** What is asked of the table of an export. */
interface Question<Parameters> {
  readonly batch_export_id: string;
  readonly parameters: Parameters;
}

const tooMany = (): ApiError =>
  new ApiError(
    429,
    'too_many_table_requests',
    'Other requests about tables are still running. Repeat the request when they have ended.',
    retryAfter(retryAfterSeconds),
  );

/**
 * Lets a worker read the table of an export, since only workers decrypt what that requires.
 * @throws ApiError 404, 400 without a table, or when the worker found why it cannot; 429, 503
 */
async function askWorker<Parameters extends object, Result extends object>(
  context: RouteContext,
  request: FastifyRequest,
  reply: FastifyReply,
  kind: JobKind<Parameters, Result>,
  { batch_export_id, parameters }: Question<Parameters>,
): Promise<Result> {
  const { project_id: team_id, actor_id: user_id } = callerOf(request);
  const { config } = await requireBatchExport(context.pool, team_id, batch_export_id);
  if (typeof config.table_format !== 'string')
    throw invalid('The batch export has no table: table_format of its destination is null.', null);
  const signal = disconnectSignal(reply);
  const started = await startJob(
    context,
    kind,
    { team_id, user_id, target: batch_export_id, parameters },
    { busy: tooMany, undone: 'Nothing was read.', retryAfterSeconds },
  );
  // A repair that has started is finished; the others are of no more use.
  const continues = kind.name === tableRepairJob.name;
  const outcome = await answerTo(context, kind, started, { maxMs: maxWaitMs, signal, continues });
  if (outcome && 'result' in outcome) return outcome.result;
  if (outcome) throw new ApiError(409, 'table_unavailable', outcome.error);
  throw new ApiError(
    503,
    'table_not_read',
    continues
      ? 'The repair is not finished yet. It continues: read the history of the table.'
      : 'No worker has read the table in time. Check that the workers run, or use "exportd verify". Retry later.',
    retryAfter(retryAfterSeconds),
  );
}

/** Describe the table of an export, list its versions, check and repair it. */
export const tableRoutes: ProjectRoutes = (app, context) => {
  app.get(
    '/batch_exports/:batch_export_id/table',
    {
      ...readsExports,
      schema: {
        summary: 'Retrieve the table of a batch export',
        description: 'What the log of the table says: its version, files, rows, columns and protocol.',
        params: tablePath,
        response: { 200: tableSchema, ...errorResponses },
      },
    },
    async (request, reply) => {
      const { batch_export_id } = request.params;
      const { columns, partition_columns, ...found } = await askWorker(
        context,
        request,
        reply,
        tableDescriptionJob,
        { batch_export_id, parameters: {} },
      );
      return { ...found, columns: [...columns], partition_columns: [...partition_columns] };
    },
  );

  app.get(
    '/batch_exports/:batch_export_id/table/history',
    {
      ...readsExports,
      schema: {
        summary: 'List the versions of the table of a batch export',
        description:
          'Newest first: what wrote a version, for which interval, and how many files came and went.',
        params: tablePath,
        querystring: tableHistoryQuery,
        response: { 200: tableHistorySchema, ...errorResponses },
      },
    },
    async (request, reply) => {
      const { batch_export_id } = request.params;
      const { limit, before = null } = request.query;
      const { versions } = await askWorker(context, request, reply, tableHistoryJob, {
        batch_export_id,
        parameters: { before, limit },
      });
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
  );

  app.post(
    '/batch_exports/:batch_export_id/table/check',
    {
      ...writesExports,
      schema: {
        summary: 'Check the table of a batch export',
        description:
          'Compares the log of the table with the current manifests, the objects and the journal. What differs becomes the condition of the export until it is repaired.',
        params: tablePath,
        body: emptyBody.optional(),
        response: { 200: tableCheckSchema, ...errorResponses },
      },
    },
    async (request, reply) => {
      const { batch_export_id } = request.params;
      const { findings, ...check } = await askWorker(context, request, reply, tableCheckJob, {
        batch_export_id,
        parameters: {},
      });
      return {
        ...check,
        findings: findings.map(({ kind, object, count, detail, start, end }) => ({
          kind,
          object,
          count,
          detail,
          data_interval_start: start,
          data_interval_end: end,
        })),
      };
    },
  );

  app.post(
    '/batch_exports/:batch_export_id/table/repair',
    {
      ...writesExports,
      schema: {
        summary: 'Repair the table of a batch export',
        description:
          'Writes one version that makes the table what the current manifests say. Intervals whose runs are active stay as they are.',
        params: tablePath,
        body: emptyBody.optional(),
        response: { 200: tableRepairSchema, ...errorResponses },
      },
    },
    async (request, reply) => {
      const { batch_export_id } = request.params;
      const { version, adds, removes } = await askWorker(context, request, reply, tableRepairJob, {
        batch_export_id,
        parameters: {},
      });
      return { version, files_added: adds, files_removed: removes };
    },
  );
};
