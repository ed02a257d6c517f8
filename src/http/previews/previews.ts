import { requireDestinationType } from '../../destination/config.ts';
import {
  type DataInterval,
  dayMs,
  previousBoundary,
  type ScheduleDefinition,
} from '../../domain/intervals.ts';
import type { EncoderPool } from '../../encoding/encoder.ts';
import type { Pool } from '../../journal/database.ts';
import { parseJson } from '../../client/exact_numbers.ts';
import { exportedColumns } from '../../source/postgres_source.ts';
import { type ExportedColumn, type RowSelection, fileColumns } from '../../source/row_selection.ts';
import type { RowBlock, RowRange, SampleOptions } from '../../source/source.ts';
import { ApiError } from '../api_error.ts';
import type { DryRunService } from '../backfills/dry_run.ts';
import {
  defaultDefinition,
  definitionFrom,
  rejectTypeChange,
  rowQueryOf,
  type WritableDefinition,
} from '../batch_exports/changes.ts';
import { type BatchExportRow, requireBatchExport } from '../batch_exports/read_model.ts';
import { configChecks, type UpdateBody } from '../batch_exports/schema.ts';
import { sourceError } from '../plugins/errors.ts';
import type { EstimateResponse, PreviewResponse } from './schema.ts';
import { type DestinationPreview, previewOf } from '../../destination/config_preview.ts';
import { rejectPartitions } from '../../destination/partitions.ts';
import { rejectSelectionForModel } from '../../destination/selection_config.ts';

/** The newest interval of a schedule that has ended. */
export function newestInterval(schedule: ScheduleDefinition, now: Date): DataInterval {
  const end = previousBoundary(schedule, now);
  const start = previousBoundary(schedule, new Date(end.getTime() - 1));
  return { start: start.toISOString(), end: end.toISOString() };
}

/** The whole intervals of the day before the newest boundary; the newest interval alone when it is longer than a day. */
export function newestIntervals(
  schedule: ScheduleDefinition,
  now: Date,
): { readonly range: DataInterval; readonly intervals: number } {
  const { start, end } = newestInterval(schedule, now);
  const lengthMs = Date.parse(end) - Date.parse(start);
  const intervals = Math.max(1, Math.floor(dayMs / lengthMs));
  const rangeStart = new Date(Date.parse(end) - intervals * lengthMs).toISOString();
  return { range: { start: intervals === 1 ? start : rangeStart, end }, intervals };
}

/** The days up to a time, in UTC. */
const daysBefore = (end: string, days: number): DataInterval => ({
  start: new Date(Date.parse(end) - days * dayMs).toISOString(),
  end,
});

/** What reading the source for a preview needs. */
type PreviewService = Pick<DryRunService, 'source' | 'settings' | 'logger'> & {
  /** Encodes in a thread, so that other requests need not wait. */
  readonly encoders: EncoderPool;
};

/** The rows that an export selects from an interval. */
const rangeOf = ({ definition, team_id, selection }: PreviewedExport, interval: DataInterval): RowRange => ({
  model: definition.model,
  team_id,
  interval,
  selection,
});

/** Reads first rows of a range, within the timeout of dry runs. @throws ApiError 400, 503 */
async function sampleRows(
  { source, settings, logger }: PreviewService,
  range: RowRange,
  { signal, ...options }: SampleOptions & { readonly signal: AbortSignal },
): Promise<RowBlock | null> {
  const timeoutMs = settings.EXPORTD_DRY_RUN_TIMEOUT;
  const timeout = AbortSignal.timeout(timeoutMs);
  try {
    return await source.sample(range, { ...options, signal: AbortSignal.any([signal, timeout]) });
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
      rows: null,
      rows_per_interval: null,
      bytes_per_interval: null,
      files_per_interval: null,
      detail: `The source did not count the rows of ${range.start} to ${range.end} within ${service.settings.EXPORTD_DRY_RUN_TIMEOUT / 1_000} seconds (EXPORTD_DRY_RUN_TIMEOUT).`,
    };
  const { maxFileBytes } = previewed.destination;
  const bytes =
    rows === 0 ? 0 : (rows / intervals) * (await encodedRowBytes(service, previewed, range, signal));
  const files = maxFileBytes === null ? 1 : Math.max(1, Math.ceil(bytes / maxFileBytes));
  return {
    ...counted,
    rows,
    rows_per_interval: Math.round((rows / intervals) * 100) / 100,
    bytes_per_interval: Math.round(bytes),
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
  const block = await sampleRows(service, rangeOf(previewed, range), { rows: measuredRows, signal });
  if (block === null) return 0;
  const options = { ...previewed.destination.encoding, on_bad_row: 'reject' } as const;
  const encoder = service.encoders.fileEncoder(options, fileColumns(block.columns));
  return (await encoder.encode(block)).bytes.length / block.rows;
}

const maxRows = 20;
/** Where rows are looked for when the newest interval has none. */
const searchedDays = 30;

/** Previews the keys of an export's newest ended interval, and its first rows. @throws ApiError 400, 503 */
export async function previewExport(
  service: PreviewService,
  previewed: PreviewedExport,
  signal: AbortSignal,
): Promise<PreviewResponse> {
  const { definition, destination, id } = previewed;
  const interval = newestInterval(definition, new Date());
  const names = destination.namesOf({
    batch_export_id: id ?? '<id>',
    model: definition.model,
    data_interval_start: interval.start,
    data_interval_end: interval.end,
  });
  const searched = daysBefore(interval.end, searchedDays);
  const sample = { rows: maxRows, cutsValues: true, signal };
  const newest = await sampleRows(service, rangeOf(previewed, interval), sample);
  const isWider = newest === null && searched.start < interval.start;
  const block = isWider ? await sampleRows(service, rangeOf(previewed, searched), sample) : newest;
  const columns = fileColumns(service.source.columns(definition.model, previewed.selection));
  return {
    interval,
    ...names,
    columns: columns.map(({ name, type }) => ({ name, type })),
    rows: block === null ? [] : await jsonRowsOf(service, block, columns),
    rows_since: isWider ? searched.start : interval.start,
  };
}

/** The values of a block's rows as JSON lines have them, whatever the format of the files. */
async function jsonRowsOf(
  { encoders }: PreviewService,
  block: RowBlock,
  columns: readonly ExportedColumn[],
): Promise<unknown[][]> {
  const options = { file_format: 'JSONLines', compression: null, on_bad_row: 'reject' } as const;
  const { bytes } = await encoders.fileEncoder(options, columns).encode(block);
  const lines = bytes.toString().split('\n');
  return lines
    .filter((line) => line !== '')
    .slice(0, maxRows)
    .map((line) => {
      const row = parseJson(line) as Record<string, unknown>;
      return columns.map(({ name }) => row[name] ?? null);
    });
}

/** An export as a body would create or change it, which need not be complete. */
interface PreviewedExport {
  readonly team_id: number;
  /** Null for an export that does not exist yet. */
  readonly id: string | null;
  readonly definition: WritableDefinition;
  readonly destination: DestinationPreview;
  readonly selection: RowSelection;
}

/**
 * Reads what a body would make of an export, or of a new one.
 * @throws CommandRejected or ApiError with the invalid field; ApiError 404
 */
export async function previewedExport(
  pool: Pool,
  teamId: number,
  id: string | null,
  body: UpdateBody,
): Promise<PreviewedExport> {
  const current = id === null ? null : await requireBatchExport(pool, teamId, id);
  if (current) rejectTypeChange(current, body.destination?.type);
  const definition = definitionFrom(current ?? { ...defaultDefinition, name: '' }, body);
  const type = body.destination?.type;
  if (type !== undefined) requireDestinationType(type);
  const config = { ...current?.config, ...body.destination?.config };
  const destination = previewOf(config, configChecks);
  rejectSelectionForModel(destination.selection, definition.model);
  const { include_events, exclude_events, filters } = destination.selection;
  const selected = { include_events, exclude_events, filters };
  const query = hasQueryOf(current, definition)
    ? current.row_query
    : await rowQueryOf(pool, teamId, definition);
  const { interval, model } = definition;
  const columns = exportedColumns(model, { query });
  rejectPartitions(config, { interval, columns, hasQuery: query !== null });
  return { team_id: teamId, id, definition, destination, selection: { ...selected, query } };
}

/** Whether the definition has the stored query, which keeps the time zone that it was stored with. */
const hasQueryOf = (
  current: BatchExportRow | null,
  { model, dialect_query }: WritableDefinition,
): current is BatchExportRow => current?.model === model && current.dialect_query === dialect_query;
