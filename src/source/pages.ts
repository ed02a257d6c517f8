import type { SortKey } from '../domain/run.ts';
import { copyOut } from './copy_out.ts';
import { parameterSetting, type ModelQuery, type QueryParameters } from './model_query.ts';
import { sortKeyAt } from './sort_key.ts';
import type { SourceConnections } from './source_connection.ts';
import type { KeyBounds, RowBlock, RowRange } from './source.ts';

/** How much one page may hold. */
export interface PageBounds {
  readonly rows: number;
  readonly bytes: number;
}

/** Bytes of a row as long as none has been seen: rather large, so that the first page is soon there. */
const assumedRowBytes = 4_096;
/** How much of the byte bound the expected rows fill, so that ordinary variation does not reach the bound. */
const filling = 0.9;

/** The settings that carry a range, and the key to go on after, into a statement. */
export function queryParameters(range: RowRange, after: SortKey | null): Record<string, string> {
  const values: Partial<QueryParameters> = {
    team_id: String(range.team_id),
    start: range.interval.start,
    end: range.interval.end,
    ...(after && { after_inserted_at: after.inserted_at, after_id: after.id }),
  };
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [parameterSetting(name as keyof QueryParameters), value]),
  );
}

/**
 * Reads a range page by page, each in a transaction of its own that has ended before the page is given out.
 *
 * The number of rows asked for follows from the size of the rows before, so that most pages end by themselves close
 * under the byte bound; where rows suddenly grow, the statement is cancelled at the bound and the next page begins
 * after the last row that was taken.
 */
export async function* readPages(
  connections: SourceConnections,
  query: ModelQuery,
  range: RowRange,
  { after }: KeyBounds,
  bounds: PageBounds,
  signal: AbortSignal,
): AsyncGenerator<RowBlock> {
  let position = after;
  let rowBytes = assumedRowBytes;
  for (;;) {
    const rows = Math.max(1, Math.min(bounds.rows, Math.floor((bounds.bytes * filling) / rowBytes)));
    const select = query.page({ rows, resumed: position !== null });
    const tuples = await connections.read(
      queryParameters(range, position),
      signal,
      ({ connection, cancel }) =>
        copyOut(connection, select, query, { maxBytes: bounds.bytes, onEnough: cancel }),
    );
    if (tuples.rows === 0) return;
    const last = sortKeyAt(tuples.block, tuples.lastAt, query);
    yield {
      columns: query.columns,
      block: tuples.block,
      rows: tuples.rows,
      first: sortKeyAt(tuples.block, 0, query),
      last,
    };
    if (!tuples.cut && tuples.rows < rows) return;
    position = last;
    rowBytes = tuples.block.length / tuples.rows;
  }
}
