import { randomUUID } from 'node:crypto';
import { storeConfig } from '../../destination/config_versions.ts';
import { definitionFrom, defaultDefinition, toUtc } from '../batch_export_definition.ts';
import { configStoreOf, lockPendingConfigVersion, updatedConfigVersion } from '../destination_config.ts';
import {
  acceptedDetail,
  submitCommand,
  teamOf,
  stillStoppingDetail,
  type ProjectRoutes,
  type RouteContext,
} from '../route_context.ts';
import { offsetPage, projectUrl } from '../paging.ts';
import { unreadable } from '../readable_items.ts';
import {
  toBatchExportResponses,
  listBatchExports,
  requireBatchExport,
} from '../read_models/batch_exports.ts';
import { rowQueryOf, updatedRowQuery } from '../row_query.ts';
import {
  batchExportPath,
  batchExportSchema,
  createBody,
  updateBody,
  type BatchExportResponse,
} from '../schemas/batch_export.ts';
import {
  acceptedCreation,
  commandResponses,
  errorResponses,
  listQuery,
  noContent,
  pageOf,
} from '../schemas/common.ts';

const read = { config: { scope: 'batch_export:read' } } as const;
const write = { config: { scope: 'batch_export:write' } } as const;

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

  app.get(
    '/batch_exports',
    {
      ...read,
      schema: {
        summary: 'List batch exports',
        querystring: listQuery,
        response: { 200: pageOf(batchExportSchema), ...errorResponses },
      },
    },
    async (request) => {
      const { count, rows } = await listBatchExports(pool, teamOf(request), request.query);
      const results = await toBatchExportResponses(context, rows);
      return offsetPage(request, settings, request.query, { count, results });
    },
  );

  app.post(
    '/batch_exports',
    {
      ...write,
      schema: {
        summary: 'Create batch export',
        body: createBody,
        response: { 201: batchExportSchema, ...commandResponses, 202: acceptedCreation },
      },
    },
    async (request, reply) => {
      const { body } = request;
      const submitted = await submitCommand(context, request, 'create', async (connection) => {
        const definition = definitionFrom({ ...defaultDefinition, name: body.name }, body);
        const batchExportId = randomUUID();
        const store = await configStoreOf(connection, context, teamOf(request));
        const version = await storeConfig(connection, store, {
          batch_export_id: batchExportId,
          destination_type: body.destination.type,
          config: body.destination.config ?? {},
          row_query: await rowQueryOf(connection, teamOf(request), definition),
        });
        return {
          batch_export_id: batchExportId,
          body: {
            definition: { ...definition, destination_type: body.destination.type, config_version: version },
            paused: body.paused ?? false,
          },
        };
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
      ...read,
      schema: {
        summary: 'Retrieve batch export',
        params: batchExportPath,
        response: { 200: batchExportSchema, ...errorResponses },
      },
    },
    (request) => readResponse(context, teamOf(request), request.params.id),
  );

  app.patch(
    '/batch_exports/:id',
    {
      ...write,
      schema: {
        summary: 'Update batch export',
        params: batchExportPath,
        body: updateBody,
        response: { 200: batchExportSchema, ...commandResponses },
      },
    },
    async (request, reply) => {
      const { id } = request.params;
      const { body } = request;
      const submitted = await submitCommand(context, request, 'update', async (connection) => {
        const pendingVersion = await lockPendingConfigVersion(connection, id);
        const current = await requireBatchExport(connection, teamOf(request), id);
        const definition = definitionFrom(current, body);
        const hasPendingUpdate = pendingVersion !== null;
        const rowQuery = await updatedRowQuery(connection, current, definition, { body, hasPendingUpdate });
        const change = { destination: body.destination, rowQuery };
        const store = await configStoreOf(connection, context, teamOf(request));
        const version = await updatedConfigVersion(connection, store, current, change, pendingVersion);
        const changed = Object.entries(definition).filter(
          ([field, value]) => field in body || value !== current[field as keyof typeof definition],
        );
        const lastPausedAt = body.last_paused_at && toUtc(body.last_paused_at);
        return {
          batch_export_id: id,
          body: {
            changes: {
              ...Object.fromEntries(changed),
              ...(version === undefined ? {} : { config_version: version }),
            },
            ...(body.paused === undefined ? {} : { paused: body.paused ?? false }),
            // Omitted when unchanged, since setting it appends an event.
            ...(lastPausedAt === undefined || lastPausedAt === current.last_paused_at
              ? {}
              : { last_paused_at: lastPausedAt }),
          },
        };
      });
      if (!submitted.decided) return reply.code(202).send(acceptedDetail);
      return reply.code(200).send(await readResponse(context, teamOf(request), id));
    },
  );

  app.delete(
    '/batch_exports/:id',
    {
      ...write,
      schema: {
        summary: 'Delete batch export',
        description: 'Cancels its backfills and runs. Exported files stay in the bucket.',
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
      if (!submitted.executionsClosed)
        return reply.code(202).send(stillStoppingDetail('The batch export is deleted'));
      return reply.code(204).send();
    },
  );
};
