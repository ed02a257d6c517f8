import pg from 'pg';
import { QueryError } from './query_errors.ts';
import type { QueryContext } from './query_kind.ts';

/** A statement with its parameters, which are never spliced into the text. */
export interface QueryStatement {
  readonly text: string;
  readonly values: readonly unknown[];
}

/** Rows as arrays in column order. */
export interface ReadRows {
  readonly rows: readonly (readonly unknown[])[];
  /** Column names and PostgreSQL type OIDs. */
  readonly columns: readonly { readonly name: string; readonly type_id: number }[];
}

/** Rows between two progress reports. */
const rowsPerReport = 500;

/** The output exceeds the size limit. */
export const resultTooLarge = (bytes: number): QueryError =>
  new QueryError(
    'result_too_large',
    `The result is larger than ${bytes} bytes. Select fewer columns or rows, or use a batch export for large amounts of data.`,
  );

/**
 * Reads at most `maxRows` rows of a SELECT and reports progress. Measures each row as it arrives, so that a result that
 * is too large is rejected before it is in memory. Uses no cursor, because PostgreSQL runs those in a single process;
 * the statement therefore needs a LIMIT close to `maxRows`.
 * @param types parsers of column values; those of the PostgreSQL client by default
 * @throws QueryError `result_too_large`; the connection still receives rows and must be discarded
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
    // Also without parameters: the extended protocol rejects a text with several statements.
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
