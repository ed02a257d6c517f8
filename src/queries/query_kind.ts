import { Socket } from 'node:net';
import pg from 'pg';
import type * as z from 'zod';
import type { JsonValue } from '../domain/event.ts';
import type { Pool } from '../journal/database.ts';
import type { PropertyDefinition } from './property_definitions.ts';
import { resultTooLarge } from './query_errors.ts';
import type { WarehouseTable } from './warehouse_tables.ts';

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

/** What PostgreSQL may send of a row beyond the bytes of its values that are left. */
const rowOverhead = 1024 * 1024;

const asText = { getTypeParser: () => (text: string) => text };

/**
 * The statements of a query over a connection to PostgreSQL. Measures each row as it arrives.
 * @param workMemOf the `work_mem` of a statement with so many operations; without it, the transaction's is used
 */
export function postgresConnection(
  client: Pick<pg.PoolClient, 'query'> & Partial<Pick<pg.PoolClient, 'connection'>>,
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
      const wire = client.connection?.stream;
      const stream = wire instanceof Socket ? wire : undefined;
      let readBefore = stream?.bytesRead ?? 0;
      // The driver keeps a row until it has all of it, so a row of any size is refused while it arrives.
      const measure = (): void => {
        if (!stream || stream.bytesRead - readBefore <= maxBytes - bytes + rowOverhead) return;
        reject(resultTooLarge(maxBytes));
        stream.destroy();
      };
      const send = (): void => {
        receive(batch, sizeOfBatch);
        batch = [];
        sizeOfBatch = 0;
      };
      const query = new pg.Query<(string | null)[]>(config, (error, result) =>
        error ? reject(error) : resolve(result.fields),
      );
      query.on('row', (row) => {
        readBefore = stream?.bytesRead ?? 0;
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
      stream?.on('data', measure);
      try {
        client.query(query);
        const fields = await promise;
        send();
        return fields.map(({ name, dataTypeID }) => ({ name, type_id: dataTypeID }));
      } finally {
        stream?.off('data', measure);
      }
    },
  };
}

/** The bytes of a row as JSON, without those that escape its characters. */
const bytesOf = (row: TextRow): number =>
  row.reduce((sum, value) => sum + (value === null ? 5 : Buffer.byteLength(value) + 3), 2);

/** How often results change, which limits the age of a cached result. Null for kinds without an interval. */
export type QueryInterval = 'minute' | 'hour' | 'day' | 'week' | 'month' | null;

/** What limits the age of a query's cached result. */
export interface QueryFreshness {
  readonly interval: QueryInterval;
  /** The fixed end of the query's date range; null if the range is open or moves with the clock. */
  readonly date_to: Date | null;
  /** Milliseconds until clients should request a refresh; a minute by default. */
  readonly next_refresh_ms?: number;
}

/** A dashboard's dates, which replace those of a query, and its property filters, which narrow it. */
export interface FiltersOverride {
  readonly date_from?: string | null | undefined;
  readonly date_to?: string | null | undefined;
  /** Property filters as sent in the request. Each kind validates them like its own. */
  readonly properties?: readonly JsonValue[] | null | undefined;
}

/** A variable that a query reads. */
export interface UsedVariable {
  readonly code_name: string;
  /** Its key in the query's field `variables`; null if the query only names its code name. */
  readonly id: string | null;
  /** The value in the query itself, if any. */
  readonly value?: JsonValue;
}

/** The settings of a project that its queries depend on. */
export interface QueryProject {
  readonly team_id: number;
  readonly timezone: string;
  readonly week_start_day: 'sunday' | 'monday';
  /** Property filters that exclude test accounts, as the project stores them. */
  readonly test_account_filters: readonly JsonValue[];
  /** Additional tables that its queries may read. */
  readonly warehouse_tables: readonly Pick<
    WarehouseTable,
    'name' | 'relation_schema' | 'relation_name' | 'team_column'
  >[];
  /** The types of its properties; a property without a definition is a string. */
  readonly property_definitions: readonly Pick<PropertyDefinition, 'scope' | 'name' | 'type'>[];
}

/** The progress of a query. */
export interface QueryProgress {
  readonly rows_read?: number;
  readonly bytes_read?: number;
  readonly estimated_rows_total?: number;
}

/** What a query kind runs with. */
export interface QueryContext {
  /**
   * A connection in a READ ONLY transaction in UTC with a statement timeout. Its statements are cancelled with the
   * query. `readRows` enforces the limits on rows and bytes.
   */
  readonly connection: QueryConnection;
  readonly project: QueryProject;
  /** The database's time, the same for all statements of the query. */
  readonly now: Date;
  /** Maximum rows of the output. A higher LIMIT is lowered to it, and `hasMore` reports further rows. */
  readonly row_limit: number;
  /** Maximum bytes of rows that `readRows` keeps. */
  readonly byte_limit: number;
  /** Values of the variables that the query reads, by code name. */
  readonly variables: Readonly<Record<string, JsonValue>>;
  /** Reports the query's progress. */
  readonly progress: (progress: QueryProgress) => void;
}

/** A list of rows or series, or one object. */
export type OutputResults = readonly unknown[] | Readonly<Record<string, unknown>>;

/** The output of a query kind. The endpoint adds the fields of the response around it. */
export interface QueryOutput {
  /** Rows, or one object for kinds without rows. */
  readonly results: OutputResults;
  readonly columns?: readonly string[];
  /** In the format of the kind: pairs of name and type, or types alone. */
  readonly types?: readonly unknown[];
  readonly hasMore?: boolean;
  readonly limit?: number;
  readonly offset?: number | null;
  /** The executed query in the dialect. */
  readonly dialect_query?: string;
  /** Additional response fields of the kind. */
  readonly more?: Readonly<Record<string, unknown>>;
}

/**
 * One kind of query. Everything but the rows is known from the parsed form, so that results can be cached and returned
 * without running the query.
 */
export interface QueryKind<Query = never> {
  /** The value of the field `kind`. */
  readonly kind: string;
  /** Alternative values of `kind`. */
  readonly aliases?: readonly string[];
  /**
   * Strict: an unknown field is rejected by name with 400 in every refresh mode. Fills in defaults, so that equal
   * queries have one form. Its output must be JSON and parse to itself, because background queries are stored and
   * parsed again.
   */
  readonly schema: z.ZodType<Query>;
  /** What limits the age of a cached result. */
  freshness(query: Query, project: QueryProject, now: Date): QueryFreshness;
  /** The variables that the query reads; none for a text that cannot be parsed, which `run` then rejects. */
  variables(query: Query): readonly UsedVariable[];
  /** The query with a dashboard's filters. @throws QueryError with the path of the invalid filter */
  override(query: Query, filters: FiltersOverride): Query;
  /** The parts of the query that its output depends on, for the cache key; the whole query by default. */
  normalizeForCache?(query: Query): unknown;
  /** Runs it. @throws QueryError */
  run(query: Query, context: QueryContext): Promise<QueryOutput>;
}

/** Reads a project's query settings and the database's time, which is `now` for the whole request. */
export async function readQueryProject(
  pool: Pool,
  teamId: number,
): Promise<{ readonly project: QueryProject; readonly now: Date }> {
  const { rows } = await pool.query<Omit<QueryProject, 'team_id'> & { now: string }>(
    `select timezone, week_start_day, test_account_filters, clock_timestamp() as now,
       (select coalesce(json_agg(json_build_object('name', name, 'relation_schema', relation_schema,
          'relation_name', relation_name, 'team_column', team_column) order by name), '[]')
        from exportd.warehouse_tables where team_id = $1) as warehouse_tables,
       (select coalesce(json_agg(json_build_object('scope', scope, 'name', name, 'type', type) order by scope, name), '[]')
        from exportd.property_definitions where team_id = $1) as property_definitions
     from exportd.projects where id = $1`,
    [teamId],
  );
  const [found] = rows;
  if (!found) throw new Error(`Project ${teamId} does not exist.`);
  const { now, ...settings } = found;
  return { project: { team_id: teamId, ...settings }, now: new Date(now) };
}
