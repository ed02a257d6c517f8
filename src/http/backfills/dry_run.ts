import pg from 'pg';
import type { Settings } from '../../config/settings.ts';
import { selectionOfConfig } from '../../destination/config_versions.ts';
import { requireMissing, toRecordedRange } from '../../decisions/ledger_boundaries.ts';
import { type BackfillScope, requireBackfillRange } from '../../domain/backfill.ts';
import { type BatchExportState, requireLive } from '../../domain/batch_export.ts';
import type { Pool } from '../../journal/database.ts';
import type { RowFinder, RowRange, Source } from '../../source/source.ts';
import type { Logger } from '../../telemetry/logger.ts';
import { notFound } from '../api_error.ts';
import { requireBatchExport } from '../batch_exports/read_model.ts';
import { sourceError } from '../plugins/errors.ts';
import { readRunSeconds, secondsOfBackfill } from './pace.ts';
import type { DryRunResponse } from './schema.ts';

/** What a dry run needs. */
export interface DryRunService {
  readonly pool: Pool;
  readonly settings: Settings;
  readonly logger: Logger;
  /** The source, read-only, with a separate connection pool. */
  readonly source: Pick<Source, 'countRows' | 'sample' | 'columns' | 'check' | 'map'> & RowFinder;
}

const statementCancelled = '57014';

/**
 * Previews a backfill: its whole intervals, and the rows that the source has for them now. Stores and starts nothing.
 * @throws CommandRejected where the backfill would be rejected; ApiError 404, 503.
 */
export async function dryRun(
  service: DryRunService,
  request: { readonly team_id: number; readonly batch_export_id: string },
  { only, ...range }: { readonly start_at: string; readonly end_at: string } & Pick<BackfillScope, 'only'>,
): Promise<DryRunResponse> {
  const { team_id, batch_export_id } = request;
  const batchExport = await requireBatchExport(service.pool, team_id, batch_export_id);
  const { state, now } = await stateOf(service.pool, batch_export_id);
  const live = requireLive(state);
  const requested = requireBackfillRange(live, {
    ...range,
    now,
    maxIntervals: service.settings.EXPORTD_MAX_BACKFILL_INTERVALS,
  });
  const intervalSource = { batchExportId: batch_export_id, revisions: live.revisions };
  const recorded = await toRecordedRange(service.pool, intervalSource, { ...requested, ...range });
  const { range: planned, parts } =
    only === 'missing'
      ? await requireMissing(service.pool, intervalSource, recorded)
      : { range: recorded, parts: [recorded] };
  const { start, end, intervals } = planned;
  const selection = selectionOfConfig(batchExport);
  const counted = await countRows(
    service,
    parts.map((part) => ({
      model: batchExport.model,
      team_id,
      interval: { start: part.start, end: part.end },
      selection,
    })),
  );
  const runSeconds = await readRunSeconds(service.pool, batch_export_id);
  const seconds = secondsOfBackfill(intervals, runSeconds, service.settings);
  return { dry_run: true, start_at: start, end_at: end, intervals, ...counted, seconds };
}

async function stateOf(pool: Pool, batchExportId: string): Promise<{ state: BatchExportState; now: Date }> {
  const { rows } = await pool.query<{ state: BatchExportState; now: string }>(
    `select state, statement_timestamp() as now from exportd.stream_states
     where stream_type = 'batch_export' and stream_id = $1`,
    [batchExportId],
  );
  const [row] = rows;
  if (!row) throw notFound();
  return { state: row.state, now: new Date(row.now) };
}

async function countRows(
  { source, settings, logger }: DryRunService,
  ranges: readonly RowRange[],
): Promise<Pick<DryRunResponse, 'rows' | 'detail'>> {
  const timeoutMs = settings.EXPORTD_DRY_RUN_TIMEOUT;
  const signal = AbortSignal.timeout(timeoutMs);
  try {
    let rows = 0;
    for (const range of ranges) rows += await source.countRows(range, signal);
    return { rows, detail: null };
  } catch (error) {
    const cancelled = error instanceof pg.DatabaseError && error.code === statementCancelled;
    if (signal.aborted || cancelled)
      return {
        rows: null,
        detail: `The source did not count the rows within ${timeoutMs / 1_000} seconds (EXPORTD_DRY_RUN_TIMEOUT). Request a shorter range.`,
      };
    logger.warn({ err: error }, 'Could not count rows in the source for a dry run.');
    throw sourceError(error) ?? error;
  }
}
