import { acceptedDetail, answerNothing, placeOrder, teamOf, type ProjectRoutes } from '../context.ts';
import { utc } from '../definition.ts';
import { dryRun } from '../dry_run.ts';
import { projectUrl } from '../paging.ts';
import { requireBatchExport } from '../reading/batch_exports.ts';
import { dryRunSchema } from '../schemas/backfill.ts';
import { backfillBody, batchExportPath, pauseBody, unpauseBody } from '../schemas/batch_export.ts';
import { commandAnswers, nothing } from '../schemas/common.ts';

const write = { config: { scope: 'batch_export:write' } } as const;
const answers = { 200: nothing, ...commandAnswers };

/** Pause, unpause and backfill a batch export. */
export const steeringRoutes: ProjectRoutes = (app, context) => {
  const { settings } = context;
  const schema = { params: batchExportPath, response: answers };

  app.post(
    '/batch_exports/:id/pause',
    { ...write, schema: { summary: 'Pause batch export', ...schema, body: pauseBody } },
    async (request, reply) => {
      const { last_paused_at } = request.body;
      const placed = await placeOrder(context, request, 'pause', async (connection) => {
        const { id } = await requireBatchExport(connection, teamOf(request), request.params.id);
        return {
          batch_export_id: id,
          body: last_paused_at ? { last_paused_at: utc(last_paused_at) } : {},
        };
      });
      return placed.decided ? answerNothing(reply) : reply.code(202).send(acceptedDetail);
    },
  );

  app.post(
    '/batch_exports/:id/unpause',
    { ...write, schema: { summary: 'Unpause batch export', ...schema, body: unpauseBody } },
    async (request, reply) => {
      const { backfill } = request.body;
      const placed = await placeOrder(context, request, 'unpause', async (connection) => {
        const { id } = await requireBatchExport(connection, teamOf(request), request.params.id);
        return { batch_export_id: id, body: backfill === undefined ? {} : { backfill } };
      });
      if (!placed.decided) return reply.code(202).send(acceptedDetail);
      const { backfill_id } = placed.outcome;
      const path = `/batch_exports/${request.params.id}/backfills/${backfill_id ?? ''}/`;
      return answerNothing(reply, backfill_id && projectUrl(request, settings, path));
    },
  );

  app.post(
    '/batch_exports/:id/backfill',
    {
      ...write,
      schema: {
        summary: 'Backfill batch export',
        description: 'Answers no body, or what would be exported when `dry_run` is true.',
        ...schema,
        response: { ...answers, 200: dryRunSchema.optional() },
        body: backfillBody,
      },
    },
    async (request, reply) => {
      const { start_at, end_at } = request.body;
      if (request.body.dry_run === true) {
        const of = { team_id: teamOf(request), batch_export_id: request.params.id };
        return reply
          .code(200)
          .send(await dryRun(context, of, { start_at: utc(start_at), end_at: utc(end_at) }));
      }
      const placed = await placeOrder(context, request, 'backfill', async (connection) => {
        const { id } = await requireBatchExport(connection, teamOf(request), request.params.id);
        return { batch_export_id: id, body: { start_at: utc(start_at), end_at: utc(end_at) } };
      });
      if (!placed.decided) return reply.code(202).send(acceptedDetail);
      const path = `/batch_exports/${request.params.id}/backfills/${placed.outcome.backfill_id ?? ''}/`;
      return answerNothing(reply, projectUrl(request, settings, path));
    },
  );
};
