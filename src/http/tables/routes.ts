import { setTimeout as wait } from 'node:timers/promises';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { TableDescription, TableVersion } from '../../tables/describe.ts';
import {
  findTableRequest,
  requestTable,
  type TableOperation,
  type TableRepairOutcome,
  type TableRequest,
  withdrawTableRequest,
} from '../../tables/table_requests.ts';
import type { TableCheck } from '../../verify/check_table.ts';
import { ApiError, invalid, retryAfter, temporalUnreachable } from '../api_error.ts';
import { requireBatchExport } from '../batch_exports/read_model.ts';
import { disconnectSignal, readsExports, teamOf, writesExports } from '../requests.ts';
import { type ProjectRoutes, type RouteContext } from '../route_context.ts';
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
/** How long a request waits for a worker, and how often it reads whether one has finished, in milliseconds. */
const [maxWaitMs, pollMs] = [50_000, 100];

/** What is asked of a worker. */
interface Asked {
  readonly batch_export_id: string;
  readonly operation: TableOperation;
  readonly parameters?: TableRequest['parameters'];
}

/**
 * Lets a worker read the table of an export, since only workers decrypt what that requires.
 * @throws ApiError 404, 400 without a table, or when the worker found why it cannot; 429, 503
 */
async function askWorker<Result>(
  { pool, verifications, logger }: RouteContext,
  request: FastifyRequest,
  reply: FastifyReply,
  { batch_export_id, operation, parameters = {} }: Asked,
): Promise<Result> {
  const team_id = teamOf(request);
  const { config } = await requireBatchExport(pool, team_id, batch_export_id);
  if (typeof config.table_format !== 'string')
    throw invalid('The batch export has no table: table_format of its destination is null.', null);
  const id = await requestTable(pool, { batch_export_id, team_id, operation, parameters });
  if (id === null)
    throw new ApiError(
      429,
      'too_many_table_requests',
      'Other requests about tables are still running. Repeat the request when they have ended.',
      retryAfter(retryAfterSeconds),
    );
  const disconnected = disconnectSignal(reply);
  const work = verifications.start(id).catch(async (error: unknown) => {
    logger.warn({ err: error, table_request_id: id }, 'Could not start a request about a table.');
    await withdrawTableRequest(pool, id);
    throw temporalUnreachable('Nothing was read.', retryAfterSeconds);
  });
  await work;
  const deadline = performance.now() + maxWaitMs;
  while (performance.now() < deadline) {
    const found = await findTableRequest(pool, id);
    if (found?.result) return found.result as Result;
    if (typeof found?.error === 'string') throw new ApiError(409, 'table_unavailable', found.error);
    await wait(pollMs, undefined, { signal: disconnected });
  }
  // A repair that has started is finished; the others are of no more use.
  if (operation !== 'repair') await withdrawTableRequest(pool, id);
  throw new ApiError(
    503,
    'table_not_read',
    operation === 'repair'
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
      const { columns, partition_columns, ...found } = await askWorker<TableDescription>(
        context,
        request,
        reply,
        { batch_export_id, operation: 'describe' },
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
      const { versions } = await askWorker<{ readonly versions: readonly TableVersion[] }>(
        context,
        request,
        reply,
        { batch_export_id, operation: 'history', parameters: { before, limit } },
      );
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
      const { findings, ...check } = await askWorker<TableCheck>(context, request, reply, {
        batch_export_id,
        operation: 'check',
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
      const { version, adds, removes } = await askWorker<TableRepairOutcome>(context, request, reply, {
        batch_export_id,
        operation: 'repair',
      });
      return { version, files_added: adds, files_removed: removes };
    },
  );
};
