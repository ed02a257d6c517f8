import { requestBackfill } from '../backfills/request_backfill.ts';
import { dryRunSchema } from '../backfills/schema.ts';
import { acceptedDetail, submitCommand } from '../command_service.ts';
import { sendEmpty, teamOf, writesExports } from '../requests.ts';
import type { ProjectRoutes } from '../route_context.ts';
import { commandResponses, noContent } from '../schemas.ts';
import { requireBatchExport, toUtc } from './read_model.ts';
import { backfillBody, batchExportPath, unpauseBody, updateBody } from './schema.ts';
import { projectUrl } from '../request_urls.ts';

const responses = { 200: noContent, ...commandResponses };

/** Pause, unpause and backfill a batch export. */
export const batchExportActionRoutes: ProjectRoutes = (app, context) => {
  const { settings } = context;
  const schema = { params: batchExportPath, response: responses };

  app.post(
    '/batch_exports/:id/pause',
    { ...writesExports, schema: { summary: 'Pause batch export', ...schema, body: updateBody } },
    async (request, reply) => {
      const { last_paused_at } = request.body;
      const submitted = await submitCommand(context, request, 'pause', async (connection) => {
        const { id } = await requireBatchExport(connection, teamOf(request), request.params.id);
        return {
          batch_export_id: id,
          body: last_paused_at ? { last_paused_at: toUtc(last_paused_at) } : {},
        };
      });
      return submitted.decided ? sendEmpty(reply) : reply.code(202).send(acceptedDetail);
    },
  );

  app.post(
    '/batch_exports/:id/unpause',
    { ...writesExports, schema: { summary: 'Unpause batch export', ...schema, body: unpauseBody } },
    async (request, reply) => {
      const { backfill } = request.body;
      const submitted = await submitCommand(context, request, 'unpause', async (connection) => {
        const { id } = await requireBatchExport(connection, teamOf(request), request.params.id);
        return { batch_export_id: id, body: backfill === undefined ? {} : { backfill } };
      });
      if (!submitted.decided) return reply.code(202).send(acceptedDetail);
      const { backfill_id } = submitted.outcome;
      const path = `/batch_exports/${request.params.id}/backfills/${backfill_id ?? ''}/`;
      return sendEmpty(reply, backfill_id && projectUrl(request, settings, path));
    },
  );

  app.post(
    '/batch_exports/:id/backfill',
    {
      ...writesExports,
      schema: {
        summary: 'Backfill batch export',
        description:
          'Exports the whole intervals that overlap the range; `Location` is the URL of the backfill. With `dry_run: true`, returns a preview instead.',
        ...schema,
        response: { ...responses, 200: dryRunSchema.optional() },
        body: backfillBody,
      },
    },
    async (request, reply) => {
      const requested = await requestBackfill(context, request, request.params.id, request.body);
      if (requested.kind === 'preview') return reply.code(200).send(requested.preview);
      if (requested.kind === 'pending') return reply.code(202).send(acceptedDetail);
      return sendEmpty(reply, requested.url);
    },
  );
};
