import pg from 'pg';
import { QueryError } from './query_errors.ts';
import type { QueryContext } from './query_kind.ts';

/** A statement with its values, which are never spliced. */
export interface QueryStatement {
  readonly text: string;
  readonly values: readonly unknown[];
}

/** Rows as arrays, in the order of the columns. */
export interface ReadRows {
  readonly rows: readonly (readonly unknown[])[];
  /** Names and PostgreSQL's type ids of the columns. */
  readonly columns: readonly { readonly name: string; readonly type_id: number }[];
}

/** How many rows are read between two reports of progress. */
const rowsPerReport = 500;

/** The rows of an answer are too many bytes. */
export const resultTooLarge = (bytes: number): QueryError =>
  new QueryError(
    'result_too_large',
    `The answer is larger than ${bytes} bytes. Select fewer columns or rows, or use a batch export for large amounts of data.`,
  );

/**
 * Reads at most `maxRows` rows of a SELECT and measures each as it comes, so that an answer that is too large is found
 * out before it is in memory; how many were read is told as the query's progress. Without a cursor, for which
 * PostgreSQL uses one process only; so the statement itself has to have a LIMIT that is not far from `maxRows`.
 * @param types how values are read from their texts; the PostgreSQL client's own ways when it is not given
 * @throws QueryError `result_too_large`; the connection, on which rows are still on their way, is then of no more use
 */
export async function readRows(
  { connection, byte_limit, progress }: Pick<QueryContext, 'connection' | 'byte_limit' | 'progress'>,
  { text, values }: QueryStatement,
  maxRows: number,
  types?: pg.CustomTypesConfig,
): Promise<ReadRows> {
  const config: pg.QueryConfig & { readonly queryMode: 'extended'; readonly rowMode: 'array' } = {
    text,
    values: [...values],
    // Even without values, so that PostgreSQL refuses a text of several statements.
    queryMode: 'extended',
    rowMode: 'array',
    ...(types && { types }),
  };
  const rows: unknown[][] = [];
  let bytes = 0;
  const { promise, resolve, reject } = Promise.withResolvers<readonly pg.FieldDef[]>();
  const query = new pg.Query<unknown[]>(config, (error, result) =>
    error ? reject(error) : resolve(result.fields),
  );
  query.on('row', (row) => {
    if (rows.length === maxRows || bytes > byte_limit) return;
    bytes += bytesOf(row);
    if (bytes > byte_limit) reject(resultTooLarge(byte_limit));
    else rows.push(row);
    if (rows.length % rowsPerReport === 0) progress({ rows_read: rows.length, bytes_read: bytes });
  });
  connection.query(query);
  const fields = await promise;
  progress({ rows_read: rows.length, bytes_read: bytes });
  return { rows, columns: fields.map(({ name, dataTypeID }) => ({ name, type_id: dataTypeID })) };
}

const bytesOf = (row: readonly unknown[]): number => Buffer.byteLength(JSON.stringify(row));
