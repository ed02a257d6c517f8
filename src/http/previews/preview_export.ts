import { encodeBlock } from '../../encoding/encode_block.ts';
import { type ExportedColumn, fileColumns } from '../../source/row_selection.ts';
import type { RowBlock } from '../../source/source.ts';
import type { PreviewResponse } from '../schemas/console/preview.ts';
import { daysBefore, newestInterval } from './newest_intervals.ts';
import type { PreviewedExport } from './previewed_export.ts';
import { rangeOf, sampleRows, type PreviewService } from './sample_rows.ts';

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
  const newest = await sampleRows(service, rangeOf(previewed, interval), maxRows, signal);
  const isWider = newest === null && searched.start < interval.start;
  const block = isWider ? await sampleRows(service, rangeOf(previewed, searched), maxRows, signal) : newest;
  const columns = fileColumns(service.source.columns(definition.model, previewed.selection));
  return {
    interval,
    ...names,
    columns: columns.map(({ name, type }) => ({ name, type })),
    rows: block === null ? [] : await jsonRowsOf(block, columns),
    rows_since: isWider ? searched.start : interval.start,
  };
}

/** The values of a block's rows as JSON lines have them, whatever the format of the files. */
async function jsonRowsOf(block: RowBlock, columns: readonly ExportedColumn[]): Promise<unknown[][]> {
  const { bytes } = await encodeBlock({
    ...block,
    options: { file_format: 'JSONLines', compression: null, on_bad_row: 'reject' },
  });
  const lines = Buffer.from(bytes).toString().split('\n');
  return lines
    .filter((line) => line !== '')
    .slice(0, maxRows)
    .map((line) => {
      const row = JSON.parse(line) as Record<string, unknown>;
      return columns.map(({ name }) => row[name] ?? null);
    });
}
