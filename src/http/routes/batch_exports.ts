import { prepareCreation, prepareUpdate } from '../batch_export_changes.ts';
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
      const submitted = await submitCommand(context, request, 'create', (connection) =>
        prepareCreation(connection, context, teamOf(request), request.body),
      );
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
      const submitted = await submitCommand(context, request, 'update', (connection) =>
        prepareUpdate(connection, context, teamOf(request), id, request.body),
      );
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
