import { encodeBlock } from '../../encoding/encode_block.ts';
import { joinBlocks } from '../../encoding/parquet/join_row_group.ts';
import { fileColumns } from '../../source/row_selection.ts';
import type { DataInterval } from '../../domain/intervals.ts';
import type { EstimateResponse } from '../schemas/console/preview.ts';
import { sourceError } from '../source_error.ts';
import { newestIntervals } from './newest_intervals.ts';
import type { PreviewedExport } from './previewed_export.ts';
import { rangeOf, sampleRows, type PreviewService } from './sample_rows.ts';

/** Rows whose encoded size is measured; fewer when they are large. */
const measuredRows = 2_000;

/**
 * Estimates the rows, bytes and files of an export's intervals by those of the last day, or by its newest interval if that
 * is longer.
 * @throws ApiError 400, 503
 */
export async function estimateExport(
  service: PreviewService,
  previewed: PreviewedExport,
  signal: AbortSignal,
): Promise<EstimateResponse> {
  const { range, intervals } = newestIntervals(previewed.definition, new Date());
  const counted = { ...range, intervals };
  const rows = await countRows(service, previewed, range, signal);
  if (rows === null)
    return {
      ...counted,
      ...{ rows: null, rows_per_interval: null, bytes_per_interval: null, files_per_interval: null },
      detail: `The source did not count the rows of ${range.start} to ${range.end} within ${service.settings.EXPORTD_DRY_RUN_TIMEOUT / 1_000} seconds (EXPORTD_DRY_RUN_TIMEOUT).`,
    };
  const { maxFileBytes } = previewed.destination;
  const bytes =
    rows === 0 ? 0 : (rows / intervals) * (await encodedRowBytes(service, previewed, range, signal));
  const files = maxFileBytes === null ? 1 : Math.max(1, Math.ceil(bytes / maxFileBytes));
  return {
    ...counted,
    rows,
    rows_per_interval: rows / intervals,
    bytes_per_interval: bytes,
    files_per_interval: rows === 0 ? 0 : files,
    detail: null,
  };
}

/** Null when it takes too long. */
async function countRows(
  { source, settings, logger }: PreviewService,
  previewed: PreviewedExport,
  range: DataInterval,
  signal: AbortSignal,
): Promise<number | null> {
  const timeout = AbortSignal.timeout(settings.EXPORTD_DRY_RUN_TIMEOUT);
  try {
    return await source.countRows(rangeOf(previewed, range), AbortSignal.any([signal, timeout]));
  } catch (error) {
    if (signal.aborted) throw error;
    if (timeout.aborted) return null;
    logger.warn({ err: error }, 'Could not count rows of the source for an estimate.');
    throw sourceError(error) ?? error;
  }
}

/** The average size of a row in the export's files. */
async function encodedRowBytes(
  service: PreviewService,
  previewed: PreviewedExport,
  range: DataInterval,
  signal: AbortSignal,
): Promise<number> {
  const block = await sampleRows(service, rangeOf(previewed, range), measuredRows, signal);
  if (block === null) return 0;
  const options = { ...previewed.destination.encoding, on_bad_row: 'reject' } as const;
  const encoded = await encodeBlock({ ...block, options });
  const { bytes } =
    options.file_format === 'Parquet'
      ? joinBlocks({ options, columns: fileColumns(block.columns), blocks: [encoded] })
      : encoded;
  return bytes.length / block.rows;
}
