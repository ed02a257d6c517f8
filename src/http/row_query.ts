import type { Connection, Pool } from '../journal/database.ts';
import { readRowQuery } from '../source/row_query/read_row_query.ts';
import type { RowQuery } from '../source/row_selection.ts';
import { ApiError } from './api_error.ts';
import type { WritableDefinition } from './batch_export_definition.ts';

type QueryFields = Pick<WritableDefinition, 'model' | 'dialect_query'>;

/**
 * Compiles the query of a definition; null when it has none. The project's current time zone and week start are stored
 * with it and interpret its dates from then on.
 * @throws ApiError 400 with the position of the error in the query.
 */
export async function rowQueryOf(
  connection: Connection | Pool,
  teamId: number,
  { model, dialect_query }: QueryFields,
): Promise<RowQuery | null> {
  if (dialect_query === null) return null;
  const { rows } = await connection.query<Pick<RowQuery, 'timezone' | 'week_start_day'>>(
    'select timezone, week_start_day from exportd.projects where id = $1',
    [teamId],
  );
  const [settings] = rows;
  if (!settings) throw new Error(`Project ${teamId} does not exist.`);
  try {
    return readRowQuery(model, { dialect_query, ...settings });
  } catch (error) {
    if (!Error.isError(error) || error.name !== 'DialectError') throw error;
    throw new ApiError(400, 'dialect_error', error.message, { attr: 'dialect_query' });
  }
}

/**
 * The query after an update; undefined when it is unchanged. A pending update of the export may change the query too, so
 * with one the query is never treated as unchanged.
 * @throws ApiError 400
 */
export async function updatedRowQuery(
  connection: Connection,
  current: QueryFields & { readonly team_id: number; readonly row_query: RowQuery | null },
  wanted: QueryFields,
  { body, hasPendingUpdate }: { readonly body: object; readonly hasPendingUpdate: boolean },
): Promise<RowQuery | null | undefined> {
  const stored = current.row_query?.dialect_query ?? null;
  const isUnchanged = wanted.dialect_query === stored && wanted.model === current.model && !hasPendingUpdate;
  if (isUnchanged || !('dialect_query' in body || 'model' in body)) return undefined;
  return rowQueryOf(connection, current.team_id, wanted);
}
