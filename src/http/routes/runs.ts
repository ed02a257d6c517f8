import { notFound } from '../api_error.ts';
import {
  acceptedDetail,
  answerNothing,
  chosen,
  placeOrder,
  teamOf,
  unreleasedDetail,
  type ProjectRoutes,
  type RouteContext,
} from '../context.ts';
import { projectUrl, withParameters } from '../paging.ts';
import { requireBatchExport } from '../reading/batch_exports.ts';
import { readRunPage } from '../reading/run_pages.ts';
import { findRun, runAnswer } from '../reading/runs.ts';
import { backfillsPath } from '../schemas/backfill.ts';
import { commandAnswers, emptyBody, errorAnswers, nothing, pageOf } from '../schemas/common.ts';
import { retryBody, runPath, runSchema, runsQuery, runStatuses, type RunAnswer } from '../schemas/run.ts';

const read = { config: { scope: 'batch_export:read' } } as const;
const write = { config: { scope: 'batch_export:write' } } as const;

interface RunPath {
  readonly batch_export_id: string;
  readonly id: string;
}

async function answerFor(context: RouteContext, teamId: number, path: RunPath): Promise<RunAnswer> {
  await requireBatchExport(context.pool, teamId, path.batch_export_id);
  const run = await findRun(context.pool, path.batch_export_id, path.id);
  if (!run) throw notFound();
  return runAnswer(run, context.runLink);
}

/** List and retrieve runs, retry and cancel one. */
export const runRoutes: ProjectRoutes = (app, context) => {
  const { settings, pool } = context;

  app.get(
    '/batch_exports/:batch_export_id/runs',
    {
      ...read,
      schema: {
        summary: 'List batch export runs',
        params: backfillsPath,
        querystring: runsQuery,
        response: { 200: pageOf(runSchema), ...errorAnswers },
      },
    },
    async (request) => {
      const { status, ...query } = request.query;
      const { batch_export_id } = request.params;
      const statuses = chosen('status', status, runStatuses);
      await requireBatchExport(pool, teamOf(request), batch_export_id);
      const page = await readRunPage(pool, batch_export_id, { cursor: undefined, ...query, statuses });
      const at = (cursor: string | null) => cursor && withParameters(request, settings, { cursor });
      return {
        count: page.count,
        next: at(page.next),
        previous: at(page.previous),
        results: page.rows.map((run) => runAnswer(run, context.runLink)),
      };
    },
  );

  app.get(
    '/batch_exports/:batch_export_id/runs/:id',
    {
      ...read,
      schema: {
        summary: 'Retrieve batch export run',
        params: runPath,
        response: { 200: runSchema, ...errorAnswers },
      },
    },
    (request) => answerFor(context, teamOf(request), request.params),
  );

  app.post(
    '/batch_exports/:batch_export_id/runs/:id/retry',
    {
      ...write,
      schema: {
        summary: 'Retry batch export run',
        description: "Opens one more run of this run's interval; `Location` names it.",
        params: runPath,
        body: retryBody,
        response: { 200: nothing, ...commandAnswers },
      },
    },
    async (request, reply) => {
      const { batch_export_id, id } = request.params;
      const placed = await placeOrder(context, request, 'retry', async (connection) => {
        await requireBatchExport(connection, teamOf(request), batch_export_id);
        if (!(await findRun(connection, batch_export_id, id))) throw notFound();
        return { batch_export_id, body: { run_id: id } };
      });
      if (!placed.decided) return reply.code(202).send(acceptedDetail);
      const { run_id, backfill_id } = placed.outcome;
      const started = run_id === undefined ? `backfills/${backfill_id ?? ''}` : `runs/${run_id}`;
      return answerNothing(
        reply,
        projectUrl(request, settings, `/batch_exports/${batch_export_id}/${started}/`),
      );
    },
  );

  app.post(
    '/batch_exports/:batch_export_id/runs/:id/cancel',
    {
      ...write,
      schema: {
        summary: 'Cancel batch export run',
        description: 'Answers 200 when nothing more of the run reaches the bucket.',
        params: runPath,
        body: emptyBody,
        response: { 200: runSchema, ...commandAnswers },
      },
    },
    async (request, reply) => {
      const { batch_export_id, id } = request.params;
      const placed = await placeOrder(context, request, 'cancelRun', async (connection) => {
        await requireBatchExport(connection, teamOf(request), batch_export_id);
        if (!(await findRun(connection, batch_export_id, id))) throw notFound();
        return { batch_export_id, body: { run_id: id } };
      });
      if (!placed.decided) return reply.code(202).send(acceptedDetail);
      if (!placed.released) return reply.code(202).send(unreleasedDetail('The run is Cancelled'));
      return reply.code(200).send(await answerFor(context, teamOf(request), request.params));
    },
  );
};
