import pg from 'pg';
import { resultTooLarge } from './query_errors.ts';

/** A statement with its parameters, which are never spliced into the text. */
export interface QueryStatement {
  readonly text: string;
  readonly values: readonly unknown[];
  /** Sorts and hash tables that it may keep in memory at the same time; few by default. */
  readonly memoryOperations?: number;
}

/** A row as PostgreSQL writes it, in column order. */
export type TextRow = readonly (string | null)[];

/** Column names and PostgreSQL type OIDs. */
export type ReadColumns = readonly { readonly name: string; readonly type_id: number }[];

/** What a statement may return, and who receives it. */
export interface RowReceiver {
  readonly maxRows: number;
  /** Maximum bytes of all rows. */
  readonly maxBytes: number;
  /** Receives the rows as they arrive, a few at a time. */
  readonly receive: (rows: readonly TextRow[], bytes: number) => void;
}

/** The statements that a query sends, in one READ ONLY transaction. A thread has none of its own: it asks its process. */
export interface QueryConnection {
  /** Runs a statement with few rows, such as one about the catalog. */
  query(text: string, values: readonly unknown[]): Promise<{ readonly rows: readonly unknown[] }>;
  /**
   * Reads at most `maxRows` rows. Uses no cursor, because PostgreSQL runs those in a single process; the statement
   * therefore needs a LIMIT close to `maxRows`.
   * @throws QueryError `result_too_large`; the connection still receives rows and must be discarded
   */
  readRows(statement: QueryStatement, receiver: RowReceiver): Promise<ReadColumns>;
}

/** Rows that are received together. */
const batchRows = 500;
const batchBytes = 256 * 1024;

const asText = { getTypeParser: () => (text: string) => text };

/**
 * The statements of a query over a connection to PostgreSQL. Measures each row as it arrives.
 * @param workMemOf the `work_mem` of a statement with so many operations; without it, the transaction's is used
 */
export function postgresConnection(
  client: Pick<pg.PoolClient, 'query'>,
  workMemOf?: (memoryOperations: number) => string,
): QueryConnection {
  let workMem = workMemOf?.(0);
  const shareMemory = async (memoryOperations = 0): Promise<void> => {
    const wanted = workMemOf?.(memoryOperations);
    if (wanted === undefined || wanted === workMem) return;
    await client.query(`set local work_mem = ${pg.escapeLiteral(wanted)}`);
    workMem = wanted;
  };
  return {
    query: (text, values) => client.query(text, [...values]),
    async readRows({ text, values, memoryOperations }, { maxRows, maxBytes, receive }) {
      await shareMemory(memoryOperations);
      const config: pg.QueryConfig & { readonly queryMode: 'extended'; readonly rowMode: 'array' } = {
        text,
        values: [...values],
        // Also without parameters: the extended protocol rejects a text with several statements.
        queryMode: 'extended',
        rowMode: 'array',
        types: asText,
      };
      const { promise, resolve, reject } = Promise.withResolvers<readonly pg.FieldDef[]>();
      let batch: TextRow[] = [];
      let sizeOfBatch = 0;
      let rows = 0;
      let bytes = 0;
      const send = (): void => {
        receive(batch, sizeOfBatch);
        batch = [];
        sizeOfBatch = 0;
      };
      const query = new pg.Query<(string | null)[]>(config, (error, result) =>
        error ? reject(error) : resolve(result.fields),
      );
      query.on('row', (row) => {
        if (rows === maxRows || bytes > maxBytes) return;
        const size = bytesOf(row);
        bytes += size;
        if (bytes > maxBytes) {
          reject(resultTooLarge(maxBytes));
          return;
        }
        rows += 1;
        batch.push(row);
        sizeOfBatch += size;
        if (batch.length === batchRows || sizeOfBatch >= batchBytes) send();
      });
      client.query(query);
      const fields = await promise;
      send();
      return fields.map(({ name, dataTypeID }) => ({ name, type_id: dataTypeID }));
    },
  };
}

/** The bytes of a row as JSON, without those that escape its characters. */
const bytesOf = (row: TextRow): number =>
  row.reduce((sum, value) => sum + (value === null ? 5 : Buffer.byteLength(value) + 3), 2);
