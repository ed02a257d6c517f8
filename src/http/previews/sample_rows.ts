import type { DataInterval } from '../../domain/intervals.ts';
import type { RowBlock, RowRange } from '../../source/source.ts';
import { ApiError } from '../api_error.ts';
import type { DryRunService } from '../dry_run.ts';
import { sourceError } from '../source_error.ts';
import type { PreviewedExport } from './previewed_export.ts';

/** What reading the source for a preview needs. */
export type PreviewService = Pick<DryRunService, 'source' | 'settings' | 'logger'>;

/** The rows that an export selects from an interval. */
export const rangeOf = (
  { definition, team_id, selection }: PreviewedExport,
  interval: DataInterval,
): RowRange => ({ model: definition.model, team_id, interval, selection });

/** Reads about `rows` first rows of a range, within the timeout of dry runs. @throws ApiError 400, 503 */
export async function sampleRows(
  { source, settings, logger }: PreviewService,
  range: RowRange,
  rows: number,
  signal: AbortSignal,
): Promise<RowBlock | null> {
  const timeoutMs = settings.EXPORTD_DRY_RUN_TIMEOUT;
  const timeout = AbortSignal.timeout(timeoutMs);
  try {
    return await source.sample(range, rows, AbortSignal.any([signal, timeout]));
  } catch (error) {
    if (signal.aborted) throw error;
    logger.warn({ err: error }, 'Could not read rows of the source for a preview.');
    if (!timeout.aborted) throw sourceError(error) ?? error;
    throw new ApiError(
      503,
      'source_unreachable',
      `The source did not return rows within ${timeoutMs / 1_000} seconds. Check its index on (team_id, inserted_at, uuid).`,
    );
  }
}
