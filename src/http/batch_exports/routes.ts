import { randomUUID } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { readStoredConfig } from '../../destination/config_versions.ts';
import { cleanUpTimeOf, readRemovalTime } from '../../decisions/remove_secrets.ts';
import { offsetPage } from '../paging.ts';
import { acceptedDetail, submitCommand } from '../command_service.ts';
import type { ProjectRoutes, RouteContext } from '../route_context.ts';
import { readsExports, teamOf, writesExports } from '../requests.ts';
import { stillStoppingDetail } from '../cancelled_runs.ts';
import {
  acceptedCreation,
  commandResponses,
  errorResponses,
  listQuery,
  noContent,
  pageOf,
} from '../schemas.ts';
import { configStoreOf, prepareCreation, prepareUpdate, rejectTypeChange } from './changes.ts';
import {
  listBatchExports,
  readExplanation,
  requireBatchExport,
  toBatchExportResponses,
} from './read_model.ts';
import { requireAssumableRole } from './role_check.ts';
import {
  batchExportPath,
  type BatchExportResponse,
  batchExportSchema,
  createBody,
  replaceBody,
  type UpdateBody,
  updateBody,
  whySchema,
} from './schema.ts';
import { mergeSealed, sealConfig } from '../../destination/sealed_config.ts';
import { unreadable } from '../readable_responses.ts';
import { projectUrl } from '../request_urls.ts';

/** When the secrets of a deleted export are removed at the latest, if its clean-up still needs them. */
const secretsUntil = 'X-Exportd-Secrets-Until';

/** The current state of an export. @throws ApiError 404, 500 when this version cannot read it */
async function readResponse(context: RouteContext, teamId: number, id: string): Promise<BatchExportResponse> {
  const row = await requireBatchExport(context.pool, teamId, id);
  const [response] = await toBatchExportResponses(context, [row]);
  if (response) return response;
  // Either it was deleted meanwhile, or it cannot be read.
  await requireBatchExport(context.pool, teamId, id);
  throw unreadable('batch export', id);
}

/** Create, list, retrieve, update and delete batch exports. */
export const batchExportRoutes: ProjectRoutes = (app, context) => {
  const { settings, pool } = context;
  const cleanUpMs = cleanUpTimeOf({
    oldGenerationRetentionMs: settings.EXPORTD_OLD_GENERATION_RETENTION,
    orphanRetentionMs: settings.EXPORTD_ORPHAN_RETENTION,
  });

  app.get(
    '/batch_exports',
    {
      ...readsExports,
      schema: {
        summary: 'List batch exports',
        querystring: listQuery,
        response: { 200: pageOf(batchExportSchema), ...errorResponses },
      },
    },
    async (request) => {
      const { count, rows } = await listBatchExports(pool, teamOf(request), request.query);
      const results = await toBatchExportResponses(context, rows);
      return offsetPage(request, settings, request.query, { count, results, read: rows.length });
    },
  );

  app.post(
    '/batch_exports',
    {
      ...writesExports,
      schema: {
        summary: 'Create batch export',
        body: createBody,
        response: { 201: batchExportSchema, ...commandResponses, 202: acceptedCreation },
      },
    },
    async (request, reply) => {
      const team = teamOf(request);
      const { type, config = {} } = request.body.destination;
      if (typeof config?.role_arn === 'string') {
        const store = await configStoreOf(pool, context, team);
        const owner = randomUUID();
        const sealed = sealConfig(store, owner, { destination_type: type, config });
        await requireAssumableRole(context, request, reply, owner, sealed);
      }
      const submitted = await submitCommand(context, request, 'create', async (connection) => {
        const prepared = await prepareCreation(connection, context, team, request.body);
        request.changedFields = prepared.changed;
        return prepared;
      });
      const id = submitted.batch_export_id;
      reply.header('location', projectUrl(request, settings, `/batch_exports/${id}/`));
      if (!submitted.decided) return reply.code(202).send({ id, ...acceptedDetail });
      return reply.code(201).send(await readResponse(context, teamOf(request), id));
    },
  );

  app.get(
    '/batch_exports/:id',
    {
      ...readsExports,
      schema: {
        summary: 'Retrieve batch export',
        params: batchExportPath,
        response: { 200: batchExportSchema, ...errorResponses },
      },
    },
    (request) => readResponse(context, teamOf(request), request.params.id),
  );

  app.get(
    '/batch_exports/:id/why',
    {
      ...readsExports,
      schema: {
        summary: 'Explain the condition of a batch export',
        description:
          'The condition with a change of the export that may have caused it, and how many exports share the bucket.',
        params: batchExportPath,
        response: { 200: whySchema, ...errorResponses },
      },
    },
    async (request) => {
      const team = teamOf(request);
      const row = await requireBatchExport(pool, team, request.params.id);
      const { condition } = await readResponse(context, team, request.params.id);
      return readExplanation(pool, row, condition);
    },
  );

  /** Submits an update. @returns whether it has been decided */
  const update = async (
    request: FastifyRequest,
    reply: FastifyReply,
    { id, body }: { readonly id: string; readonly body: UpdateBody },
  ): Promise<boolean> => {
    const team = teamOf(request);
    const { destination } = body;
    if (destination?.config) {
      const current = await requireBatchExport(pool, team, id);
      rejectTypeChange(current, destination.type);
      const base = await readStoredConfig(pool, id, current.config_version);
      const role = 'role_arn' in destination.config ? destination.config.role_arn : base.config.role_arn;
      if (typeof role === 'string') {
        const store = await configStoreOf(pool, context, team);
        const sealed = mergeSealed(store, id, base, destination.config);
        const isNew = sealed.config.role_arn !== base.config.role_arn || Object.keys(base.secrets).length > 0;
        if (isNew) await requireAssumableRole(context, request, reply, id, sealed);
      }
    }
    const submitted = await submitCommand(context, request, 'update', async (connection) => {
      const prepared = await prepareUpdate(connection, context, team, id, body);
      request.changedFields = prepared.changed;
      return prepared;
    });
    return submitted.decided;
  };
  const updated = { params: batchExportPath, response: { 200: batchExportSchema, ...commandResponses } };

  app.patch(
    '/batch_exports/:id',
    { ...writesExports, schema: { summary: 'Update batch export', ...updated, body: updateBody } },
    async (request, reply) => {
      const { body, params } = request;
      if (!(await update(request, reply, { id: params.id, body })))
        return reply.code(202).send(acceptedDetail);
      return reply.code(200).send(await readResponse(context, teamOf(request), params.id));
    },
  );

  app.put(
    '/batch_exports/:id',
    {
      ...writesExports,
      schema: {
        summary: 'Replace batch export',
        description:
          'As an update, for which `name`, `interval` and `destination` are required. Other fields that are omitted keep their values, secrets too.',
        ...updated,
        body: replaceBody,
      },
    },
    async (request, reply) => {
      const { body, params } = request;
      if (!(await update(request, reply, { id: params.id, body })))
        return reply.code(202).send(acceptedDetail);
      return reply.code(200).send(await readResponse(context, teamOf(request), params.id));
    },
  );

  app.delete(
    '/batch_exports/:id',
    {
      ...writesExports,
      schema: {
        summary: 'Delete batch export',
        description: `Cancels its backfills and runs. Exported files stay in the bucket. Its secrets are removed at once, unless unpublished objects are left to delete: the header \`${secretsUntil}\` is then the time by which they are removed.`,
        params: batchExportPath,
        response: { 204: noContent, ...commandResponses },
      },
    },
    async (request, reply) => {
      const { id } = request.params;
      const submitted = await submitCommand(context, request, 'delete', async (connection) => {
        await requireBatchExport(connection, teamOf(request), id);
        return { batch_export_id: id, body: {} };
      });
      if (!submitted.decided) return reply.code(202).send(acceptedDetail);
      const removedBy = await readRemovalTime(pool, id, cleanUpMs);
      if (removedBy) reply.header(secretsUntil, removedBy);
      if (submitted.stoppingRuns.length > 0)
        return reply
          .code(202)
          .send(stillStoppingDetail('The batch export is deleted', submitted.stoppingRuns, settings));
      return reply.code(204).send();
    },
  );
};
