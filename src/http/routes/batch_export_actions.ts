import {
  acceptedDetail,
  allowsShrink,
  sendEmpty,
  submitCommand,
  teamOf,
  type ProjectRoutes,
} from '../route_context.ts';
import { toUtc } from '../batch_export_definition.ts';
import { dryRun } from '../dry_run.ts';
import { projectUrl } from '../paging.ts';
import { requireBatchExport } from '../read_models/batch_exports.ts';
import { dryRunSchema } from '../schemas/backfill.ts';
import { backfillBody, batchExportPath, pauseBody, unpauseBody } from '../schemas/batch_export.ts';
import { commandResponses, noContent } from '../schemas/common.ts';

const write = { config: { scope: 'batch_export:write' } } as const;
const responses = { 200: noContent, ...commandResponses };

/** Pause, unpause and backfill a batch export. */
export const batchExportActionRoutes: ProjectRoutes = (app, context) => {
  const { settings } = context;
  const schema = { params: batchExportPath, response: responses };

  app.post(
    '/batch_exports/:id/pause',
    { ...write, schema: { summary: 'Pause batch export', ...schema, body: pauseBody } },
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
    { ...write, schema: { summary: 'Unpause batch export', ...schema, body: unpauseBody } },
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
      ...write,
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
      const { start_at, end_at } = request.body;
      if (request.body.dry_run === true) {
        const target = { team_id: teamOf(request), batch_export_id: request.params.id };
        return reply
          .code(200)
          .send(await dryRun(context, target, { start_at: toUtc(start_at), end_at: toUtc(end_at) }));
      }
      const submitted = await submitCommand(context, request, 'backfill', async (connection) => {
        const { id } = await requireBatchExport(connection, teamOf(request), request.params.id);
        const range = { start_at: toUtc(start_at), end_at: toUtc(end_at) };
        return { batch_export_id: id, body: { ...range, ...allowsShrink(request.body) } };
      });
      if (!submitted.decided) return reply.code(202).send(acceptedDetail);
      const path = `/batch_exports/${request.params.id}/backfills/${submitted.outcome.backfill_id ?? ''}/`;
      return sendEmpty(reply, projectUrl(request, settings, path));
    },
  );
};
