import { notFound } from '../api_error.ts';
import {
  acceptedDetail,
  allowsShrink,
  sendEmpty,
  parseChoices,
  submitCommand,
  teamOf,
  stillStoppingDetail,
  type ProjectRoutes,
  type RouteContext,
} from '../route_context.ts';
import { resolveListTimes } from '../list_times.ts';
import { projectUrl, withParameters } from '../paging.ts';
import { requireBatchExport } from '../read_models/batch_exports.ts';
import { toReadableResponse, toReadableResponses } from '../readable_items.ts';
import { readRunPage } from '../read_models/run_pages.ts';
import { findRun, toRunResponse, type RunRow } from '../read_models/runs.ts';
import { backfillsPath } from '../schemas/backfill.ts';
import { commandResponses, emptyBody, errorResponses, noContent, pageOf } from '../schemas/common.ts';
import { retryBody, runPath, runSchema, runsQuery, runStatuses, type RunResponse } from '../schemas/run.ts';

const read = { config: { scope: 'batch_export:read' } } as const;
const write = { config: { scope: 'batch_export:write' } } as const;

interface RunPath {
  readonly batch_export_id: string;
  readonly id: string;
}

async function readResponse(context: RouteContext, teamId: number, path: RunPath): Promise<RunResponse> {
  await requireBatchExport(context.pool, teamId, path.batch_export_id);
  const run = await findRun(context.pool, path.batch_export_id, path.id);
  if (!run) throw notFound();
  return toReadableResponse(run, conversionOf(context));
}

const conversionOf = ({ runLink, logger }: RouteContext) => ({
  what: 'run',
  schema: runSchema,
  convert: (run: RunRow) => toRunResponse(run, runLink),
  logger,
});

/** List, retrieve, retry and cancel runs. */
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
        response: { 200: pageOf(runSchema), ...errorResponses },
      },
    },
    async (request) => {
      const { batch_export_id } = request.params;
      await requireBatchExport(pool, teamOf(request), batch_export_id);
      const { status, ...query } = await resolveListTimes(pool, teamOf(request), request.query);
      const statuses = parseChoices('status', status, runStatuses);
      const page = await readRunPage(pool, batch_export_id, { cursor: undefined, ...query, statuses });
      const urlOf = (cursor: string | null) => cursor && withParameters(request, settings, { cursor });
      return {
        count: page.count,
        next: urlOf(page.next),
        previous: urlOf(page.previous),
        results: toReadableResponses(page.rows, conversionOf(context)),
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
        response: { 200: runSchema, ...errorResponses },
      },
    },
    (request) => readResponse(context, teamOf(request), request.params),
  );

  app.post(
    '/batch_exports/:batch_export_id/runs/:id/retry',
    {
      ...write,
      schema: {
        summary: 'Retry batch export run',
        description:
          "Creates another run of this run's interval. `Location` is the URL of the run, or of the backfill that will create it.",
        params: runPath,
        body: retryBody,
        response: { 200: noContent, ...commandResponses },
      },
    },
    async (request, reply) => {
      const { batch_export_id, id } = request.params;
      const submitted = await submitCommand(context, request, 'retry', async (connection) => {
        await requireBatchExport(connection, teamOf(request), batch_export_id);
        if (!(await findRun(connection, batch_export_id, id))) throw notFound();
        return { batch_export_id, body: { run_id: id, ...allowsShrink(request.body) } };
      });
      if (!submitted.decided) return reply.code(202).send(acceptedDetail);
      const { run_id, backfill_id } = submitted.outcome;
      const started = run_id === undefined ? `backfills/${backfill_id ?? ''}` : `runs/${run_id}`;
      return sendEmpty(reply, projectUrl(request, settings, `/batch_exports/${batch_export_id}/${started}/`));
    },
  );

  app.post(
    '/batch_exports/:batch_export_id/runs/:id/cancel',
    {
      ...write,
      schema: {
        summary: 'Cancel batch export run',
        description: 'Responds 200 once nothing more of the run can reach the bucket, else 202.',
        params: runPath,
        body: emptyBody,
        response: { 200: runSchema, ...commandResponses },
      },
    },
    async (request, reply) => {
      const { batch_export_id, id } = request.params;
      const submitted = await submitCommand(context, request, 'cancelRun', async (connection) => {
        await requireBatchExport(connection, teamOf(request), batch_export_id);
        if (!(await findRun(connection, batch_export_id, id))) throw notFound();
        return { batch_export_id, body: { run_id: id } };
      });
      if (!submitted.decided) return reply.code(202).send(acceptedDetail);
      if (!submitted.executionsClosed)
        return reply.code(202).send(stillStoppingDetail('The run is Cancelled'));
      return reply.code(200).send(await readResponse(context, teamOf(request), request.params));
    },
  );
};
