import type { SortKey } from '../domain/exported_files.ts';
import type { ModelQuery } from './model_query.ts';
import { statementSettings } from './pages.ts';
import type { RowSelection } from './row_selection.ts';
import type { SourceConnections } from './source_connection.ts';
import type { RowRange } from './source.ts';

/** Keys of one page: about 10 MB of memory. */
const defaultPageRows = 50_000;

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
): AsyncGenerator<SortKey> {
  if (!query.keys) throw new RangeError('Only the keys of events can be read.');
  for (let after: SortKey | null = null; ;) {
    const text = query.keys(pageRows, { after: after !== null, until: false });
    const page: SortKey[] = await connections.read(
      statementSettings(query, range, { after }),
      signal,
      async ({ connection }) => (await connection.query<SortKey>(text)).rows,
    );
    for (const { inserted_at, id } of page) yield { inserted_at, id };
    const last = page.at(-1);
    if (page.length < pageRows || !last) return;
    after = last;
  }
}

/** More rows than a range has: the row with an id may be the last one. */
const everyRow = 2_147_483_647;

/** Finds the key of the row with this id in a range; null if there is none. */
export async function findKey(
  connections: SourceConnections,
  query: Pick<ModelQuery, 'keys' | 'settings'>,
  range: RowRange,
  id: string,
  signal: AbortSignal | undefined,
): Promise<SortKey | null> {
  if (!query.keys) throw new RangeError('Only events can be found by their id.');
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

/** Whether the files of a selection of events contain the sort keys of their rows, under the names of the model. */
export const filesHaveKeys = ({ query }: Pick<RowSelection, 'query'>): boolean =>
  !query ||
  ['_inserted_at', 'uuid'].every((column) =>
    query.fields.some(({ name, expression }) => name === column && expression === column),
  );
