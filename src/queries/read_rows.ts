import type { QueryStatement, ReadColumns } from './query_connection.ts';
import type { QueryContext } from './query_kind.ts';

/** Rows as arrays in column order, as PostgreSQL writes their values. */
export interface ReadRows {
  readonly rows: readonly (readonly (string | null)[])[];
  readonly columns: ReadColumns;
}

/**
 * Reads at most `maxRows` rows of a SELECT and reports progress. A result that is too large is rejected before it is in
 * memory.
 * @throws QueryError `result_too_large`
 */
export async function readRows(
  { connection, byte_limit, progress }: Pick<QueryContext, 'connection' | 'byte_limit' | 'progress'>,
  statement: QueryStatement,
  maxRows: number,
): Promise<ReadRows> {
  const rows: (readonly (string | null)[])[] = [];
  let bytes = 0;
  const columns = await connection.readRows(statement, {
    maxRows,
    maxBytes: byte_limit,
    receive: (batch, size) => {
      for (const row of batch) rows.push(row);
      bytes += size;
      progress({ rows_read: rows.length, bytes_read: bytes });
    },
  });
  return { rows, columns };
}
