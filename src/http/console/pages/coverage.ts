import { type Coverage, sentenceOf, type SourceBefore } from '../../../domain/coverage.ts';
import { countIntervals, intervalContaining, type ScheduleRevision } from '../../../domain/intervals.ts';
import type { Pool } from '../../../journal/database.ts';
import { type ExportStanding, readStandings } from '../../../projections/export_conditions.ts';
import { allRows } from '../../../source/row_selection.ts';
import { ApiError } from '../../api_error.ts';
import type { DryRunService } from '../../backfills/dry_run.ts';
import { findFirstRow, firstRowTimeoutMs } from '../../backfills/first_row.ts';
import { readRunSeconds } from '../../backfills/pace.ts';
import { backfillsPath } from '../../backfills/schema.ts';
import { type BatchExportRow, requireBatchExport } from '../../batch_exports/read_model.ts';
import { disconnectSignal, readsExports, teamOf } from '../../requests.ts';
import type { ProjectRoutes } from '../../route_context.ts';
import { sourceError } from '../../plugins/errors.ts';
import { errorResponses } from '../../schemas.ts';
import {
  type CoverageKind,
  coverageQuery,
  type CoverageQuery,
  coverageSchema,
  type CoverageSegment,
  type FirstRowResponse,
  firstRowSchema,
} from './schema.ts';
import { unreadable } from '../../readable_responses.ts';

/** What a range is in the bar: a failed or held run is seen also where earlier files stay. */
const kindOf = ({ state, reason }: Coverage['ranges'][number]): CoverageKind => {
  if (reason === 'failed' || reason === 'held') return reason;
  if (state !== 'not_owed') return state;
  if (reason === 'before creation') return 'missing';
  return reason === 'paused' || reason === 'expired' ? reason : 'excluded';
};

/** The ranges of the bar: what the export knows of, adjacent ones of a kind as one. */
function segmentsOf(
  { ranges }: Pick<Coverage, 'ranges'>,
  revisions: readonly ScheduleRevision[],
): CoverageSegment[] {
  const segments: Omit<CoverageSegment, 'intervals'>[] = [];
  for (const range of ranges) {
    const { start, end } = range;
    if (start === null) continue;
    const kind = kindOf(range);
    const last = segments.at(-1);
    if (last?.kind === kind) segments[segments.length - 1] = { ...last, end };
    else segments.push({ start, end, kind });
  }
  return segments.map((segment) => ({ ...segment, intervals: countIntervals(revisions, segment) }));
}

/** The end of the time of which the export knows nothing; null if it knows all, or if older ranges were left out. */
const unknownUntil = ({ ranges: [first] }: Pick<Coverage, 'ranges'>): string | null =>
  first?.start === null ? first.end : null;

/** What a page has read of the source, if it is still of the time that the export knows nothing of. */
function sourceOf(
  coverage: Coverage,
  { first_row_at, rows_before, before }: CoverageQuery,
): SourceBefore | undefined {
  if (before === undefined) return undefined;
  const isCurrent = before === unknownUntil(coverage);
  return { first_row_at: first_row_at ?? null, rows: isCurrent ? (rows_before ?? null) : null };
}

async function requireStanding(
  pool: Pool,
  id: string,
): Promise<ExportStanding & { readonly coverage: Coverage }> {
  const standing = (await readStandings(pool, [id], () => undefined)).get(id);
  if (!standing?.coverage) throw unreadable('batch export', id);
  return { ...standing, coverage: standing.coverage };
}

/**
 * Reads when the first row of an export's model was inserted, by the index of the source, and counts the rows before the time that
 * the export knows of: only a page of one export asks, and what takes longer than the timeout is not known. Says why.
 */
async function readFirstRow(
  { source, logger }: Pick<DryRunService, 'source' | 'logger'>,
  { model, team_id }: Pick<BatchExportRow, 'model' | 'team_id'>,
  before: string | null,
  signal: AbortSignal,
): Promise<FirstRowResponse> {
  const timeout = AbortSignal.timeout(firstRowTimeoutMs);
  const unknown = { at: null, before, rows_before: null };
  try {
    const either = AbortSignal.any([signal, timeout]);
    const at = await findFirstRow({ source }, { model, team_id }, either);
    if (at === null || before === null || at >= before) return { ...unknown, at, detail: null };
    const rows = await source
      .countRows({ model, team_id, interval: { start: at, end: before }, selection: allRows }, either)
      .catch((error: unknown) => {
        if (timeout.aborted) return null;
        throw error;
      });
    return { at, before, rows_before: rows, detail: null };
  } catch (error) {
    if (signal.aborted) throw error;
    logger.warn({ err: error }, 'Could not read the first row of the source.');
    if (timeout.aborted)
      return {
        ...unknown,
        detail: `The source did not return its first row within ${firstRowTimeoutMs / 1_000} seconds.`,
      };
    const known = sourceError(error);
    if (!(known instanceof ApiError)) throw error;
    return { ...unknown, detail: known.message };
  }
}

/** How much of the source's time an export covers. */
export const coverageRoutes: ProjectRoutes = (app, context) => {
  const { pool, settings, shares, exportLink } = context;

  app.get(
    '/console/batch_exports/:batch_export_id/coverage',
    {
      ...readsExports,
      schema: {
        hide: true,
        params: backfillsPath,
        querystring: coverageQuery,
        response: { 200: coverageSchema, ...errorResponses },
      },
    },
    async (request) => {
      const { batch_export_id: id } = request.params;
      await requireBatchExport(pool, teamOf(request), id);
      const { state, now, coverage } = await requireStanding(pool, id);
      const { start: until } = intervalContaining(state.revisions, new Date(now));
      return {
        now,
        segments: segmentsOf(coverage, state.revisions),
        is_complete: coverage.is_complete,
        sentence: sentenceOf(coverage, state.definition.timezone, sourceOf(coverage, request.query)),
        run_seconds: await readRunSeconds(pool, id),
        newest_interval: intervalContaining(state.revisions, new Date(Date.parse(until) - 1)),
        next_run_at: coverage.next_end,
        concurrent_runs: settings.EXPORTD_BACKFILL_CONCURRENCY,
        temporal_ui: exportLink(id),
      };
    },
  );

  app.get(
    '/console/batch_exports/:batch_export_id/first_row',
    {
      ...readsExports,
      schema: { hide: true, params: backfillsPath, response: { 200: firstRowSchema, ...errorResponses } },
    },
    async (request, reply) => {
      const { batch_export_id: id } = request.params;
      const batchExport = await requireBatchExport(pool, teamOf(request), id);
      const before = unknownUntil((await requireStanding(pool, id)).coverage);
      const signal = disconnectSignal(reply);
      return shares.previews(request, signal, () => readFirstRow(context, batchExport, before, signal));
    },
  );
};
