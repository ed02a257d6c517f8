import { randomUUID } from 'node:crypto';
import { storeConfig } from '../../destination/config_versions.ts';
import { notFound } from '../api_error.ts';
import { definitionFrom, defaultDefinition, utc } from '../definition.ts';
import { lockAwaitedConfigVersion, updatedConfigVersion } from '../destination_config.ts';
import {
  acceptedDetail,
  placeOrder,
  teamOf,
  unreleasedDetail,
  type ProjectRoutes,
  type RouteContext,
} from '../context.ts';
import { offsetPage, projectUrl } from '../paging.ts';
import { batchExportAnswers, listBatchExports, requireBatchExport } from '../reading/batch_exports.ts';
import { rowQueryOf, updatedRowQuery } from '../row_query.ts';
import {
  batchExportPath,
  batchExportSchema,
  createBody,
  updateBody,
  type BatchExportAnswer,
} from '../schemas/batch_export.ts';
import { commandAnswers, errorAnswers, listQuery, nothing, pageOf } from '../schemas/common.ts';

const read = { config: { scope: 'batch_export:read' } } as const;
const write = { config: { scope: 'batch_export:write' } } as const;

/** One export as it is now. @throws ApiError 404 */
async function answerFor(context: RouteContext, teamId: number, id: string): Promise<BatchExportAnswer> {
  const row = await requireBatchExport(context.pool, teamId, id);
  const [answer] = await batchExportAnswers(context.pool, [row], context.runLink);
  if (!answer) throw notFound();
  return answer;
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
        response: { 200: pageOf(batchExportSchema), ...errorAnswers },
      },
    },
    async (request) => {
      const { count, rows } = await listBatchExports(pool, teamOf(request), request.query);
      const results = await batchExportAnswers(pool, rows, context.runLink);
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
        response: { 201: batchExportSchema, ...commandAnswers },
      },
    },
    async (request, reply) => {
      const { body } = request;
      const placed = await placeOrder(context, request, 'create', async (connection) => {
        const definition = definitionFrom({ ...defaultDefinition, name: body.name }, body);
        const batchExportId = randomUUID();
        const version = await storeConfig(connection, context, {
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
      if (!placed.decided) return reply.code(202).send(acceptedDetail);
      const id = placed.batch_export_id;
      return reply
        .code(201)
        .header('location', projectUrl(request, settings, `/batch_exports/${id}/`))
        .send(await answerFor(context, teamOf(request), id));
    },
  );

  app.get(
    '/batch_exports/:id',
    {
      ...read,
      schema: {
        summary: 'Retrieve batch export',
        params: batchExportPath,
        response: { 200: batchExportSchema, ...errorAnswers },
      },
    },
    (request) => answerFor(context, teamOf(request), request.params.id),
  );

  app.patch(
    '/batch_exports/:id',
    {
      ...write,
      schema: {
        summary: 'Update batch export',
        params: batchExportPath,
        body: updateBody,
        response: { 200: batchExportSchema, ...commandAnswers },
      },
    },
    async (request, reply) => {
      const { id } = request.params;
      const { body } = request;
      const placed = await placeOrder(context, request, 'update', async (connection) => {
        const awaited = await lockAwaitedConfigVersion(connection, id);
        const current = await requireBatchExport(connection, teamOf(request), id);
        const definition = definitionFrom(current, body);
        const isAwaited = awaited !== null;
        const rowQuery = await updatedRowQuery(connection, current, definition, { body, isAwaited });
        const change = { destination: body.destination, rowQuery };
        const version = await updatedConfigVersion(connection, context, current, change, awaited);
        const changed = Object.entries(definition).filter(
          ([member, value]) => member in body || value !== current[member as keyof typeof definition],
        );
        const lastPausedAt = body.last_paused_at && utc(body.last_paused_at);
        return {
          batch_export_id: id,
          body: {
            changes: {
              ...Object.fromEntries(changed),
              ...(version === undefined ? {} : { config_version: version }),
            },
            ...(body.paused === undefined ? {} : { paused: body.paused ?? false }),
            // Left out when nothing changes: writing it is an event of its own.
            ...(lastPausedAt === undefined || lastPausedAt === current.last_paused_at
              ? {}
              : { last_paused_at: lastPausedAt }),
          },
        };
      });
      if (!placed.decided) return reply.code(202).send(acceptedDetail);
      return reply.code(200).send(await answerFor(context, teamOf(request), id));
    },
  );

  app.delete(
    '/batch_exports/:id',
    {
      ...write,
      schema: {
        summary: 'Delete batch export',
        description: 'Ends its backfills and runs. What lies in the bucket stays there.',
        params: batchExportPath,
        response: { 204: nothing, ...commandAnswers },
      },
    },
    async (request, reply) => {
      const { id } = request.params;
      const placed = await placeOrder(context, request, 'delete', async (connection) => {
        await requireBatchExport(connection, teamOf(request), id);
        return { batch_export_id: id, body: {} };
      });
      if (!placed.decided) return reply.code(202).send(acceptedDetail);
      if (!placed.released) return reply.code(202).send(unreleasedDetail('The batch export is deleted'));
      return reply.code(204).send();
    },
  );
};
