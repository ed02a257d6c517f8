import type { Schema } from '@exportd/dialect/schema';
import type { QueryInference } from './inferred_types.ts';

/**
 * What queries know of exportd: the warehouse that they ask, of one project, in one READ ONLY transaction. Over PostgreSQL it is
 * `postgresWarehouse`. A thread has none of its own: it asks its process.
 */
export interface Warehouse {
  /** The relations that queries of the project may read, with their columns. @throws RelationNotFound */
  schema(): Promise<WarehouseSchema>;
  /**
   * Reads at most `maxRows` rows. Uses no cursor, because PostgreSQL runs those in a single process; the statement
   * therefore needs a LIMIT close to `maxRows`.
   * @throws QueryError `result_too_large`; the connection still receives rows and must be discarded
   */
  readRows(statement: QueryStatement, receiver: RowReceiver): Promise<ReadColumns>;
}

/** The schema that queries are compiled against. */
export interface WarehouseSchema extends Schema {
  readonly inference?: QueryInference;
  /** What stands in for a column that the source cannot answer; null in a source that has all. */
  readonly substitute: Substitute | null;
}

/** SQL in place of a column, and what a result that depends on it says. */
export interface Substitute {
  readonly sql: string;
  readonly column: string;
  readonly notice: string;
}

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
