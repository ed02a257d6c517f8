/** Reads the keys of rows, without their columns. */
import type { SortKey } from '../domain/sort_key.ts';
import { everyRow, type ModelQuery, statementSettings } from './model_query.ts';
import { defaultPageRows } from './read_ranges.ts';
import type { RowKey, RowRange } from './source.ts';
import type { SourceConnections } from './source_connection.ts';

/** How many times as many keys a page has after one of a single time, because each of them may sort all keys of that time. */
const rowsOfTime = 4;

/**
 * Reads the sort keys of a range in order. Each page is read completely, in a separate short transaction. Rows with equal
 * keys are all yielded.
 */
export async function* readKeys(
  connections: SourceConnections,
  query: Pick<ModelQuery, 'keys' | 'settings'>,
  range: RowRange,
  signal: AbortSignal,
  pageRows = defaultPageRows,
): AsyncGenerator<RowKey> {
  let wanted = pageRows;
  for (let after: SortKey | null = null; ;) {
    const text = query.keys(wanted, { after: after !== null, until: false });
    const page: RowKey[] = await connections.read(
      statementSettings(query, range, { after }),
      signal,
      async ({ connection }) => (await connection.query<RowKey>(text)).rows,
    );
    for (const { inserted_at, id, version } of page) yield { inserted_at, id, version };
    const last = page.at(-1);
    if (page.length < wanted || !last) return;
    wanted = pageRows * (page[0]?.inserted_at === last.inserted_at ? rowsOfTime : 1);
    after = last;
  }
}

/** Finds the key of the row with this id in a range; null if there is none. */
export async function findKey(
  connections: SourceConnections,
  query: Pick<ModelQuery, 'keys' | 'settings'>,
  range: RowRange,
  id: string,
  signal: AbortSignal | undefined,
): Promise<SortKey | null> {
  const keys = query.keys(everyRow, { after: false, until: false });
  return connections.read(statementSettings(query, range), signal, async ({ connection }) => {
    const { rows } = await connection.query<SortKey>(
      `select inserted_at, id from (${keys}) as key where id = $1 limit 1`,
      [id],
    );
    const [found] = rows;
    return found ? { inserted_at: found.inserted_at, id: found.id } : null;
  });
}
