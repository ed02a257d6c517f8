/** Reads a few rows for a preview, with long values cut. */
import { bounds } from '../config/bounds.ts';
import { copyOut } from './copy_out.ts';
import { statementSettings } from './model_query.ts';
import { type CreateModelQuery, fingerprintPlanOf } from './read_fingerprints.ts';
import type { ExportedColumn } from './row_selection.ts';
import type { RowBlock, RowRange, SampleOptions } from './source.ts';
import type { SourceConnections } from './source_connection.ts';

/** The size of a sample: enough rows to see how well they compress, and few enough to encode without being noticed. */
const maxSampleBytes = 256 * 1024;

/** Each value of a preview keeps this many characters, however many columns there are. */
const minCutCharacters = 16;

/** The rows of a page with long values cut, evenly by the number of columns. JSON that is cut becomes a string. */
function cutValues(select: string, columns: readonly ExportedColumn[]): string {
  const evenly = Math.floor(bounds.previewRow.max / columns.length);
  const characters = Math.max(minCutCharacters, Math.min(bounds.previewValue.max, evenly));
  const cut = ({ type }: ExportedColumn, index: number): string => {
    const value = `c${index}`;
    switch (type) {
      case 'text':
        return `case when octet_length(${value}) > ${characters} then left(${value}, ${characters}) || '…' else ${value} end`;
      case 'json':
        return `case when octet_length(${value}::text) > ${characters} then to_json(left(${value}::text, ${characters}) || '…') else ${value}::text::json end`;
      default:
        return value;
    }
  };
  const names = columns.map((_, index) => `c${index}`).join(', ');
  return `select ${columns.map(cut).join(', ')} from (${select}) as row (${names})`;
}

/**
 * Reads the first rows of a range, as one block that ends before `rows` rows when they are large. Null when the range
 * has no rows.
 * @throws RowTooWide for a row whose values are not cut
 */
export async function readSample(
  connections: SourceConnections,
  createQuery: CreateModelQuery,
  range: RowRange,
  { rows, cutsValues = false, signal }: SampleOptions,
): Promise<RowBlock | null> {
  const query = await createQuery(range, signal);
  return connections.read(statementSettings(query, range), signal, async ({ connection, cancel }) => {
    const page = query.page(rows, { after: false, until: false });
    const select = cutsValues ? cutValues(page, query.columns) : page;
    const limits = {
      blockBytes: maxSampleBytes,
      maxBytes: maxSampleBytes,
      endsWithinKey: true,
      onFull: cancel,
      maxRow: bounds.sampledRow,
      enoughMs: bounds.sampleTime.max,
    };
    const [block] = (await copyOut(connection, select, query, limits)).blocks;
    return block === undefined ? null : { ...block, fingerprint: fingerprintPlanOf(query, range) };
  });
}
