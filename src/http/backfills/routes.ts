import type { FastifyRequest } from 'fastify';
import { doneAt } from '../../domain/coverage.ts';
import type { Connection, Pool } from '../../journal/database.ts';
import { isUncounted } from '../../projections/backfills.ts';
import { notFound } from '../api_error.ts';
import { requireBatchExport } from '../batch_exports/read_model.ts';
import { countRows, offsetPage } from '../paging.ts';
import { acceptedDetail, submitCommand } from '../command_service.ts';
import type { ProjectRoutes, RouteContext } from '../route_context.ts';
import { readsExports, teamOf, writesExports } from '../requests.ts';
import { stillStoppingDetail } from '../cancelled_runs.ts';
import { commandResponses, emptyBody, errorResponses, pageOf } from '../schemas.ts';
import { requestBackfill } from './request_backfill.ts';
import {
  backfillPath,
  type BackfillResponse,
  backfillSchema,
  backfillsPath,
  type BackfillsQuery,
  backfillsQuery,
  createBackfillBody,
  createdBackfillSchema,
  dryRunSchema,
} from './schema.ts';
import { toReadableResponse, toReadableResponses } from '../readable_responses.ts';

/** A backfill as stored in the read model, with its counts. */
type BackfillRow = Omit<BackfillResponse, 'batch_export' | 'progress'> &
  Omit<NonNullable<BackfillResponse['progress']>, 'progress' | 'retrying_runs' | 'done_at'> & {
    readonly batch_export_id: string;
  };

// The outcome of a run with automatic retries is that of the last retry. Automatic retries belong to the run's backfill
// or, like the run, to the schedule; a retry that a user requests is a separate backfill. The backfill's row already
// counts the runs that ended for good, so only the others are read, however many runs there are.
const selection = `
  select backfill.id, backfill.batch_export_id, backfill.team_id, backfill.start_at, backfill.end_at, backfill.status,
    backfill.total_runs + case when backfill.kind = 'repair' and backfill.finished_at is null then (
      select count(*) from exportd.interval_repairs repair where repair.batch_export_id = backfill.batch_export_id)::int
      else 0 end as total_runs,
    backfill.retry_of_run_id, backfill.kind = 'failed' as retries_failed, backfill.kind = 'repair' as is_repair,
    backfill.allow_shrink, case when backfill.only_missing then 'missing' end as only, backfill.rewrites as rewrite,
    backfill.created_at, backfill.finished_at,
    backfill.last_updated_at,
    backfill.completed_runs + backfill.failed_runs + backfill.cancelled_runs + uncounted.finished_runs as finished_runs,
    backfill.completed_runs + uncounted.completed_runs as completed_runs,
    backfill.unchanged_runs + uncounted.unchanged_runs as unchanged_runs,
    backfill.failed_runs + uncounted.failed_runs as failed_runs,
    backfill.cancelled_runs + uncounted.cancelled_runs as cancelled_runs,
    backfill.records_completed + uncounted.records_completed as records_completed,
    backfill.records_total_count + uncounted.records_total_count as records_total_count
  from exportd.backfills backfill cross join lateral (
    select count(*) filter (where run.finished_at is not null) as finished_runs,
      count(*) filter (where outcome.status = 'Completed') as completed_runs,
      count(*) filter (where outcome.status = 'Completed' and outcome.manifest_key is null) as unchanged_runs,
      count(*) filter (where outcome.status in ('Failed', 'Terminated')
        or outcome.status in ('FailedRetryable', 'TimedOut') and outcome.retry_at is null) as failed_runs,
      count(*) filter (where outcome.status = 'Cancelled') as cancelled_runs,
      coalesce(sum(outcome.records_completed), 0)::bigint as records_completed,
      coalesce(sum(outcome.records_total_count), 0)::bigint as records_total_count
    from (select * from exportd.backfill_runs where ${isUncounted()}) uncounted_run
    join exportd.batch_export_runs run on run.id = uncounted_run.run_id
    left join lateral (
      select * from exportd.batch_export_runs retry
      where run.status in ('FailedRetryable', 'TimedOut') and retry.batch_export_id = run.batch_export_id
        and retry.data_interval_start = run.data_interval_start and retry.data_interval_end = run.data_interval_end
        and retry.backfill_id is not distinct from run.backfill_id and retry.position > run.position
      order by retry.position desc limit 1) retry on true
    cross join lateral (
      select coalesce(retry.status, run.status) as status, coalesce(retry.retry_at, run.retry_at) as retry_at,
        case when retry.id is null then run.manifest_key else retry.manifest_key end as manifest_key,
        coalesce(retry.records_completed, run.records_completed) as records_completed,
        coalesce(retry.records_total_count, run.records_total_count) as records_total_count) outcome
    where uncounted_run.backfill_id = backfill.id) uncounted
  where backfill.batch_export_id = $1`;

function toBackfillResponse(row: BackfillRow): BackfillResponse {
  const { batch_export_id, total_runs, finished_runs, completed_runs, unchanged_runs, ...others } = row;
  const { failed_runs, cancelled_runs, records_completed, records_total_count, ...fields } = others;
  const progress = {
    total_runs,
    finished_runs,
    completed_runs,
    unchanged_runs,
    failed_runs,
    cancelled_runs,
    retrying_runs: finished_runs - completed_runs - failed_runs - cancelled_runs,
    progress: total_runs === 0 ? 1 : finished_runs / total_runs,
    records_completed,
    records_total_count,
    done_at: row.status === 'Running' ? doneAt({ ...row, finished: finished_runs, total: total_runs }) : null,
  };
  return { ...fields, batch_export: batch_export_id, progress: row.status === 'Cancelled' ? null : progress };
}

/** Finds a backfill of an export. */
export async function findBackfill(
  database: Pool | Connection,
  batchExportId: string,
  id: string,
): Promise<BackfillResponse | undefined> {
  const { rows } = await database.query<BackfillRow>(`${selection} and backfill.id = $2`, [
    batchExportId,
    id,
  ]);
  return rows[0] && toBackfillResponse(rows[0]);
}

const orders: Readonly<Record<BackfillsQuery['ordering'], string>> = {
  created_at: 'backfill.position',
  '-created_at': 'backfill.position desc',
  start_at: 'backfill.start_at, backfill.position',
  '-start_at': 'backfill.start_at desc, backfill.position desc',
};

/** A page of an export's backfills, retries of single runs included. */
async function listBackfills(
  pool: Pool,
  batchExportId: string,
  { ordering, limit, offset }: BackfillsQuery,
): Promise<{ count: number; results: BackfillResponse[] }> {
  const count = await countRows(pool, 'from exportd.backfills where batch_export_id = $1', [batchExportId]);
  const { rows } = await pool.query<BackfillRow>(
    `${selection} order by ${orders[ordering]} limit $2 offset $3`,
    [batchExportId, limit, offset],
  );
  return { count, results: rows.map(toBackfillResponse) };
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
  const readResponse = async (request: FastifyRequest, batchExportId: string, id: string) => {
    await requireBatchExport(pool, teamOf(request), batchExportId);
    const found = await findBackfill(pool, batchExportId, id);
    if (!found) throw notFound();
    return toReadableResponse(found, conversionOf(context));
  };

  app.get(
    '/batch_exports/:batch_export_id/backfills',
    {
      ...readsExports,
      schema: {
        summary: 'List backfills',
        params: backfillsPath,
        querystring: backfillsQuery,
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
      ...writesExports,
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
      const requested = await requestBackfill(context, request, batch_export_id, request.body);
      if (requested.kind === 'preview') return reply.code(200).send(requested.preview);
      if (requested.kind === 'pending') return reply.code(202).send(acceptedDetail);
      const { id, url } = requested;
      return reply
        .code(201)
        .header('location', url)
        .send({ backfill_id: id, ...(await readResponse(request, batch_export_id, id)) });
    },
  );

  app.get(
    '/batch_exports/:batch_export_id/backfills/:id',
    {
      ...readsExports,
      schema: {
        summary: 'Retrieve backfill',
        params: backfillPath,
        response: { 200: backfillSchema, ...errorResponses },
      },
    },
    (request) => readResponse(request, request.params.batch_export_id, request.params.id),
  );

  for (const { path, name, summary } of actions)
    app.post(
      `/batch_exports/:batch_export_id/backfills/:id/${path}`,
      {
        ...writesExports,
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
        if (submitted.stoppingRuns.length > 0)
          return reply
            .code(202)
            .send(stillStoppingDetail('The backfill is Cancelled', submitted.stoppingRuns, settings));
        return reply.code(200).send(await readResponse(request, batch_export_id, id));
      },
    );
};
