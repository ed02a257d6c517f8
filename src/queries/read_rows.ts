import type pg from 'pg';
import { QueryInvalid } from './query_errors.ts';
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

/** Few enough that a block of wide rows does not fill the memory before it is measured. */
const rowsPerFetch = 500;
const cursor = 'exportd_query';

/** The rows of an answer are too many bytes. */
export const tooLarge = (bytes: number): QueryInvalid =>
  new QueryInvalid(
    'result_too_large',
    `The answer is larger than ${bytes} bytes. Select fewer columns or rows, or use a batch export for large amounts of data.`,
  );

/**
 * Reads at most `mostRows` rows of a SELECT, block by block, so that an answer that is too large is found out before it
 * is in memory; how many were read is told as the query's progress.
 * @param types how values are read from their texts; the PostgreSQL client's own ways when it is not given
 * @throws QueryInvalid `result_too_large`
 */
export async function readRows(
  { connection, byte_limit, progress }: Pick<QueryContext, 'connection' | 'byte_limit' | 'progress'>,
  { text, values }: QueryStatement,
  mostRows: number,
  types?: pg.CustomTypesConfig,
): Promise<ReadRows> {
  const declaration: pg.QueryConfig & { readonly queryMode: 'extended' } = {
    text: `declare ${cursor} no scroll cursor for ${text}`,
    values: [...values],
    // Even without values, so that PostgreSQL refuses a text of several statements.
    queryMode: 'extended',
  };
  await connection.query(declaration);
  const rows: unknown[][] = [];
  let bytes = 0;
  for (;;) {
    const wanted = Math.min(rowsPerFetch, mostRows - rows.length);
    const fetched = await connection.query<unknown[]>({
      text: `fetch ${wanted} from ${cursor}`,
      rowMode: 'array',
      ...(types && { types }),
    });
    for (const row of fetched.rows) {
      bytes += bytesOf(row);
      if (bytes > byte_limit) throw tooLarge(byte_limit);
      rows.push(row);
    }
    progress({ rows_read: rows.length, bytes_read: bytes });
    if (fetched.rows.length < wanted || rows.length >= mostRows) {
      await connection.query(`close ${cursor}`);
      const columns = fetched.fields.map(({ name, dataTypeID }) => ({ name, type_id: dataTypeID }));
      return { rows, columns };
    }
  }
}

const bytesOf = (row: readonly unknown[]): number => Buffer.byteLength(JSON.stringify(row));
