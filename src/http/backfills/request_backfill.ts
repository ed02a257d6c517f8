import type { FastifyRequest } from 'fastify';
import type * as z from 'zod';
import { supportsOffsets } from '../../domain/batch_export.ts';
import { startOfDate } from '../../domain/intervals.ts';
import type { Pool } from '../../journal/database.ts';
import { ApiError, invalid } from '../api_error.ts';
import { requireBatchExport, toUtc } from '../batch_exports/read_model.ts';
import { submitCommand } from '../command_service.ts';
import { sourceError } from '../plugins/errors.ts';
import { teamOf } from '../requests.ts';
import type { RouteContext } from '../route_context.ts';
import { dryRun } from './dry_run.ts';
import { findFirstRow, firstRowTimeoutMs } from './first_row.ts';
import type { createBackfillBody, dryRunSchema } from './schema.ts';
import { projectUrl } from '../request_urls.ts';

/** What a request for a backfill led to. */
type RequestedBackfill =
  | { readonly kind: 'preview'; readonly preview: z.input<typeof dryRunSchema> }
  /** The command is stored, and not applied yet. */
  | { readonly kind: 'pending' }
  | { readonly kind: 'created'; readonly id: string; readonly url: string };

/**
 * Previews or creates the backfill of a range, for both paths that do: `/batch_exports/:id/backfill` responds without a body, as
 * clients of the API expect, and `/batch_exports/:batch_export_id/backfills` with the backfill.
 * @throws ApiError 404 for an export of another project, and when the command is rejected
 */
export async function requestBackfill(
  context: RouteContext,
  request: FastifyRequest,
  batchExportId: string,
  body: z.infer<typeof createBackfillBody>,
): Promise<RequestedBackfill> {
  const only = body.only === 'missing' && { only: body.only };
  const range = { ...(await readRange(context, request, batchExportId, body)), ...only };
  if (body.dry_run === true) {
    const target = { team_id: teamOf(request), batch_export_id: batchExportId };
    return { kind: 'preview', preview: await dryRun(context, target, range) };
  }
  const submitted = await submitCommand(context, request, 'backfill', async (connection) => {
    await requireBatchExport(connection, teamOf(request), batchExportId);
    const { allow_shrink, rewrite } = body;
    return {
      batch_export_id: batchExportId,
      body: {
        ...range,
        ...(allow_shrink === true && { allow_shrink }),
        ...(rewrite === true && { rewrite }),
      },
    };
  });
  if (!submitted.decided) return { kind: 'pending' };
  const id = submitted.outcome.backfill_id ?? '';
  const path = `/batch_exports/${batchExportId}/backfills/${id}/`;
  return { kind: 'created', id, url: projectUrl(request, context.settings, path) };
}

/**
 * The range of a request as times.
 * @throws ApiError 400 for a date that stands for no time, 404, and those of reading the first row
 */
async function readRange(
  context: RouteContext,
  request: FastifyRequest,
  batchExportId: string,
  { start_at, end_at }: Pick<z.infer<typeof createBackfillBody>, 'start_at' | 'end_at'>,
): Promise<{ readonly start_at: string; readonly end_at: string }> {
  const { pool } = context;
  const timeOf = async (field: string, bound: string): Promise<string> => {
    if (bound.includes('T')) return toUtc(bound);
    const found = await requireBatchExport(pool, teamOf(request), batchExportId);
    if (!supportsOffsets(found.interval))
      throw invalid(
        `A date is no time for intervals that are shorter than a day, as those of this export (${found.interval}). Send a time with an offset, such as ${bound}T00:00:00Z.`,
        field,
      );
    return startOfDate(bound, found).toISOString();
  };
  return {
    start_at:
      start_at === null
        ? toUtc(await findFirstStart(context, request, batchExportId))
        : await timeOf('start_at', start_at),
    end_at: end_at === null ? await readTime(pool) : await timeOf('end_at', end_at),
  };
}

/** The time of the database, by which intervals have ended. */
async function readTime(pool: Pool): Promise<string> {
  const { rows } = await pool.query<{ now: string }>('select statement_timestamp() as now');
  return toUtc(String(rows[0]?.now));
}

/** When the source has the first row of an export. @throws ApiError 400 without rows, 404, 429, 503 */
async function findFirstStart(
  context: RouteContext,
  request: FastifyRequest,
  batchExportId: string,
): Promise<string> {
  const found = await requireBatchExport(context.pool, teamOf(request), batchExportId);
  const timeout = AbortSignal.timeout(firstRowTimeoutMs);
  const first = await context.shares
    .previews(request, timeout, () => findFirstRow(context, found, timeout))
    .catch((error: unknown) => {
      if (timeout.aborted)
        throw new ApiError(
          503,
          'source_unreachable',
          `The source did not return its first row within ${firstRowTimeoutMs / 1_000} seconds. Pass a start_at.`,
        );
      throw sourceError(error) ?? error;
    });
  if (first === null) throw invalid('The source has no row to begin with.', 'start_at');
  return first;
}
