import type { FastifyRequest } from 'fastify';
import { readExportsToRetry } from '../../decisions/failed_intervals.ts';
import { isActiveStatus } from '../../domain/run_state.ts';
import { deterministicId } from '../../journal/journal.ts';
import { ApiError, invalid } from '../api_error.ts';
import { callerOf } from '../plugins/authentication.ts';
import { backfillsPath } from '../backfills/schema.ts';
import { requireBatchExport } from '../batch_exports/read_model.ts';
import {
  acceptedDetail,
  idempotencyKeyOf,
  type SubmissionResult,
  submitCommand,
} from '../command_service.ts';
import { parseChoices, readsExports, sendEmpty, teamOf, writesExports } from '../requests.ts';
import type { ProjectRoutes, RouteContext } from '../route_context.ts';
import { stillStoppingDetail } from '../cancelled_runs.ts';
import { commandResponses, emptyBody, errorResponses, noContent, pageOf } from '../schemas.ts';
import { readRunPage, requireRun, type RunRow, toRunResponse } from './read_model.ts';
import {
  type RetriedExport,
  retryBody,
  retryFailedBody,
  retryFailedSchema,
  runPath,
  type RunResponse,
  runSchema,
  runsQuery,
  runStatuses,
} from './schema.ts';
import { resolveListTimes } from '../list_times.ts';
import { toReadableResponse, toReadableResponses } from '../readable_responses.ts';
import { projectUrl, withParameters } from '../request_urls.ts';

interface RunPath {
  readonly batch_export_id: string;
  readonly id: string;
}

async function readResponse(context: RouteContext, teamId: number, path: RunPath): Promise<RunResponse> {
  await requireBatchExport(context.pool, teamId, path.batch_export_id);
  const run = await requireRun(context.pool, path);
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
      ...readsExports,
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
      ...readsExports,
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
      ...writesExports,
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
        await requireRun(connection, { batch_export_id, id });
        return { batch_export_id, body: { run_id: id } };
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
      ...writesExports,
      schema: {
        summary: 'Cancel batch export run',
        description:
          'Responds 200 once nothing more of the run can reach the bucket, else 202. While it publishes its manifest, a run is cancelled once the bucket shows that the manifest is not there; `status_detail` says so.',
        params: runPath,
        body: emptyBody,
        response: { 200: runSchema, ...commandResponses },
      },
    },
    async (request, reply) => {
      const { batch_export_id, id } = request.params;
      const submitted = await submitCommand(context, request, 'cancelRun', async (connection) => {
        await requireBatchExport(connection, teamOf(request), batch_export_id);
        await requireRun(connection, { batch_export_id, id });
        return { batch_export_id, body: { run_id: id } };
      });
      if (!submitted.decided) return reply.code(202).send(acceptedDetail);
      if (submitted.stoppingRuns.length > 0)
        return reply
          .code(202)
          .send(stillStoppingDetail('The run is Cancelled', submitted.stoppingRuns, settings));
      const run = await readResponse(context, teamOf(request), request.params);
      if (isActiveStatus(run.status))
        return reply.code(202).send({ detail: run.status_detail ?? run.status });
      // A run that was publishing has ended otherwise meanwhile.
      if (run.status !== 'Cancelled')
        throw new ApiError(409, 'conflict', `Cannot cancel a run that is in '${run.status}' status.`);
      return reply.code(200).send(run);
    },
  );
};

/** Commands that are submitted at the same time. */
const maxConcurrent = 50;
/** How long each command waits for its outcome at least, in milliseconds: enough to signal its schedule. */
const minTimeoutMs = 1_000;

/**
 * Retries the failed runs of all live exports of the caller's project, or of one of them, with one command for each export that has any.
 * @returns what was started for each of these exports, and the error where it was not
 * @throws ApiError when no command was accepted
 */
async function retryFailedRuns(
  context: RouteContext,
  request: FastifyRequest,
  { since, batchExportId }: { readonly since: string | null; readonly batchExportId: string | null },
): Promise<RetriedExport[]> {
  const caller = callerOf(request);
  const key = idempotencyKeyOf(request);
  const keyOf = (batchExportId: string) =>
    key === undefined ? undefined : deterministicId('retry_failed', key, batchExportId);
  const ids = await readExportsToRetry(context.pool, caller.project_id, { since, batchExportId }, keyOf);
  const deadline = performance.now() + context.settings.EXPORTD_COMMAND_TIMEOUT;
  const submit = (batch_export_id: string): Promise<SubmissionResult> =>
    context.commandService.submit({
      name: 'retryFailed',
      caller,
      idempotencyKey: keyOf(batch_export_id),
      request: { path: request.params, body: request.body },
      prepare: () => Promise.resolve({ batch_export_id, body: { since } }),
      timeoutMs: Math.max(minTimeoutMs, deadline - performance.now()),
    });
  const errors: ApiError[] = [];
  const retry = async (id: string): Promise<RetriedExport> => {
    try {
      return toRetriedExport(id, await submit(id));
    } catch (error) {
      // One export that was deleted or cannot be reached must not keep the others from their retries.
      if (!(error instanceof ApiError)) throw error;
      errors.push(error);
      return { batch_export: id, backfill_id: null, runs: null, detail: error.message };
    }
  };
  const retried: RetriedExport[] = [];
  for (let from = 0; from < ids.length; from += maxConcurrent)
    retried.push(...(await Promise.all(ids.slice(from, from + maxConcurrent).map(retry))));
  if (errors[0] && errors.length === ids.length) throw errors[0];
  return retried;
}

const toRetriedExport = (id: string, submitted: SubmissionResult): RetriedExport =>
  submitted.decided
    ? {
        batch_export: id,
        backfill_id: submitted.outcome.backfill_id ?? null,
        runs: submitted.outcome.runs ?? 0,
        detail: null,
      }
    : { batch_export: id, backfill_id: null, runs: null, detail: 'The request is still being applied.' };

/** Retry the failed runs of a project. */
export const failedRunRoutes: ProjectRoutes = (app, context) => {
  app.post(
    '/batch_exports/retry_failed',
    {
      ...writesExports,
      schema: {
        summary: 'Retry failed runs of batch exports',
        description:
          'After a fault was fixed: exports each interval of the project again whose newest run is Failed, ' +
          'FailedRetryable or TimedOut, paused exports included, with one backfill for each export. Runs that are held ' +
          'because rows are missing in the source are left out.',
        body: retryFailedBody,
        response: { 200: retryFailedSchema, 202: retryFailedSchema, ...errorResponses },
      },
    },
    async (request, reply) => {
      const { since } = await resolveListTimes(context.pool, teamOf(request), { since: request.body.since });
      const batchExportId = request.body.batch_export ?? null;
      if (batchExportId !== null)
        await requireBatchExport(context.pool, teamOf(request), batchExportId).catch((error: unknown) => {
          if (!(error instanceof ApiError)) throw error;
          throw invalid('No batch export in this project has this id.', 'batch_export');
        });
      const retried = await retryFailedRuns(context, request, {
        since: since ? new Date(since).toISOString() : null,
        batchExportId,
      });
      // Another run of these intervals has been created since.
      const results = retried.filter((one) => one.runs !== 0);
      const runs = results.reduce((sum, one) => sum + (one.runs ?? 0), 0);
      const pending = results.some((one) => one.runs === null);
      return reply.code(pending ? 202 : 200).send({ runs, results });
    },
  );
};
