import type { FastifyRequest } from 'fastify';
import { notFound } from '../api_error.ts';
import {
  acceptedDetail,
  allowsShrink,
  submitCommand,
  teamOf,
  stillStoppingDetail,
  type ProjectRoutes,
  type RouteContext,
} from '../route_context.ts';
import { toUtc } from '../batch_export_definition.ts';
import { dryRun } from '../dry_run.ts';
import { offsetPage, projectUrl } from '../paging.ts';
import { toReadableResponse, toReadableResponses } from '../readable_items.ts';
import { findBackfill, listBackfills } from '../read_models/backfills.ts';
import { requireBatchExport } from '../read_models/batch_exports.ts';
import {
  backfillPath,
  backfillSchema,
  backfillsPath,
  createBackfillBody,
  createdBackfillSchema,
  dryRunSchema,
  type BackfillResponse,
} from '../schemas/backfill.ts';
import { commandResponses, emptyBody, errorResponses, listQuery, pageOf } from '../schemas/common.ts';

const read = { config: { scope: 'batch_export:read' } } as const;
const write = { config: { scope: 'batch_export:write' } } as const;

async function readResponse(
  context: RouteContext,
  request: FastifyRequest,
  batchExportId: string,
  id: string,
): Promise<BackfillResponse> {
  await requireBatchExport(context.pool, teamOf(request), batchExportId);
  const found = await findBackfill(context.pool, batchExportId, id);
  if (!found) throw notFound();
  return toReadableResponse(found, conversionOf(context));
}

const conversionOf = ({ logger }: RouteContext) => ({
  what: 'backfill',
  schema: backfillSchema,
  convert: (backfill: BackfillResponse) => backfill,
  logger,
});

const actions = [
  { path: 'cancel', name: 'cancelBackfill', summary: 'Cancel backfill' },
  { path: 'pause', name: 'pauseBackfill', summary: 'Pause backfill' },
  { path: 'unpause', name: 'unpauseBackfill', summary: 'Unpause backfill' },
] as const;

/** Create, list, retrieve, cancel, pause and unpause backfills. */
export const backfillRoutes: ProjectRoutes = (app, context) => {
  const { settings, pool } = context;

  app.get(
    '/batch_exports/:batch_export_id/backfills',
    {
      ...read,
      schema: {
        summary: 'List backfills',
        params: backfillsPath,
        querystring: listQuery,
        response: { 200: pageOf(backfillSchema), ...errorResponses },
      },
    },
    async (request) => {
      const { batch_export_id } = request.params;
      await requireBatchExport(pool, teamOf(request), batch_export_id);
      const { count, results } = await listBackfills(pool, batch_export_id, request.query);
      const readable = toReadableResponses(results, conversionOf(context));
      return offsetPage(request, settings, request.query, { count, results: readable });
    },
  );

  app.post(
    '/batch_exports/:batch_export_id/backfills',
    {
      ...write,
      schema: {
        summary: 'Create backfill',
        description:
          'Exports the whole intervals that overlap the range. With `dry_run: true`, previews that without starting it.',
        params: backfillsPath,
        body: createBackfillBody,
        response: { 200: dryRunSchema, 201: createdBackfillSchema, ...commandResponses },
      },
    },
    async (request, reply) => {
      const { batch_export_id } = request.params;
      const { start_at, end_at } = request.body;
      if (request.body.dry_run === true) {
        const target = { team_id: teamOf(request), batch_export_id };
        return reply
          .code(200)
          .send(await dryRun(context, target, { start_at: toUtc(start_at), end_at: toUtc(end_at) }));
      }
      const submitted = await submitCommand(context, request, 'backfill', async (connection) => {
        await requireBatchExport(connection, teamOf(request), batch_export_id);
        const range = { start_at: toUtc(start_at), end_at: toUtc(end_at) };
        return { batch_export_id, body: { ...range, ...allowsShrink(request.body) } };
      });
      if (!submitted.decided) return reply.code(202).send(acceptedDetail);
      const id = submitted.outcome.backfill_id ?? '';
      return reply
        .code(201)
        .header(
          'location',
          projectUrl(request, settings, `/batch_exports/${batch_export_id}/backfills/${id}/`),
        )
        .send({ backfill_id: id, ...(await readResponse(context, request, batch_export_id, id)) });
    },
  );

  app.get(
    '/batch_exports/:batch_export_id/backfills/:id',
    {
      ...read,
      schema: {
        summary: 'Retrieve backfill',
        params: backfillPath,
        response: { 200: backfillSchema, ...errorResponses },
      },
    },
    (request) => readResponse(context, request, request.params.batch_export_id, request.params.id),
  );

  for (const { path, name, summary } of actions)
    app.post(
      `/batch_exports/:batch_export_id/backfills/:id/${path}`,
      {
        ...write,
        schema: {
          summary,
          params: backfillPath,
          body: emptyBody,
          response: { 200: backfillSchema, ...commandResponses },
        },
      },
      async (request, reply) => {
        const { batch_export_id, id } = request.params;
        const submitted = await submitCommand(context, request, name, async (connection) => {
          await requireBatchExport(connection, teamOf(request), batch_export_id);
          if (!(await findBackfill(connection, batch_export_id, id))) throw notFound();
          return { batch_export_id, body: { backfill_id: id } };
        });
        if (!submitted.decided) return reply.code(202).send(acceptedDetail);
        if (!submitted.executionsClosed)
          return reply.code(202).send(stillStoppingDetail('The backfill is Cancelled'));
        return reply.code(200).send(await readResponse(context, request, batch_export_id, id));
      },
    );
};
