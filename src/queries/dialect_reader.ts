import type { Query } from '@exportd/dialect/ast';
import { type CompiledStatement, compileQuery, type RowLimits } from '@exportd/dialect/compile/compile_query';
import type { Placeholders } from '@exportd/dialect/resolve/placeholders';
import { type Found, type Project, searchKey } from '@exportd/dialect/resolve/statement';
import type { Schema } from '@exportd/dialect/schema';
import { conditionOfAction } from './actions.ts';
import type { QueryContext, QueryProject } from './query_kind.ts';
import type { QueryStatement, ReadColumns, TextRow } from './warehouse.ts';
import { withFieldPath } from './expressions.ts';
import { valueFormatter } from './value_formatter.ts';

/** Rows as arrays in column order, as PostgreSQL writes their values. */
interface ReadRows {
  readonly rows: readonly (readonly (string | null)[])[];
  readonly columns: ReadColumns;
}

/**
 * Reads at most `maxRows` rows of a SELECT and reports progress. A result that is too large is rejected before it is in
 * memory.
 * @throws QueryError `result_too_large`
 */
export async function readRows(
  { warehouse, byte_limit, progress }: Pick<QueryContext, 'warehouse' | 'byte_limit' | 'progress'>,
  statement: QueryStatement,
  maxRows: number,
): Promise<ReadRows> {
  const rows: (readonly (string | null)[])[] = [];
  let bytes = 0;
  const columns = await warehouse.readRows(statement, {
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

/** The result of one dialect statement. */
export interface DialectRows {
  readonly statement: CompiledStatement;
  /** Formatted for JSON, at most `statement.limit` rows. */
  readonly rows: readonly (readonly unknown[])[];
  /** The row of WITH TOTALS, if any. */
  readonly totals: readonly (readonly unknown[])[];
  /** Whether rows beyond the limit exist. */
  readonly hasMore: boolean;
  /** Whether a query of a set operation has more rows than the default limit, so that rows are missing. */
  readonly hasCutBranch: boolean;
}

export interface ReadOptions {
  readonly placeholders?: Placeholders;
  /** The default and the maximum LIMIT; both are the context's `row_limit` by default. */
  readonly rows?: RowLimits;
  /** The path that errors name; null for exportd's own queries. */
  readonly attr?: string | null;
  /** The rows of the query's searches. */
  readonly found?: Found;
}

/** More than a warehouse counts for an id. */
const bytesOfId = 64;

/** Compiles and runs dialect queries, given as text or as an AST, for one request. */
export interface DialectReader {
  readonly schema: Schema;
  /** @throws QueryError `dialect_error` */
  compile(query: string | Query, options?: ReadOptions): CompiledStatement;
  /** Compiles and runs a query. Statements run one after another. @throws QueryError */
  read(query: string | Query, options?: ReadOptions): Promise<DialectRows>;
}

/** What the text of a query is compiled against. */
export interface ProjectSchema {
  readonly project: QueryProject;
  readonly now: Date;
  readonly schema: Schema;
}

/** The project as the compiler takes it. */
export const compilerProject = ({ project, now, schema }: ProjectSchema): Project => ({
  teamId: project.team_id,
  timezone: project.timezone,
  weekStartDay: project.week_start_day,
  now: now.toISOString(),
  schema,
  actions: project.actions.map((action) => ({
    id: action.id,
    name: action.name,
    condition: () => conditionOfAction(action),
  })),
});

/** Reads the schema of the warehouse for the queries of one request. @throws RelationNotFound */
export async function openDialectReader(context: QueryContext): Promise<DialectReader> {
  const { warehouse, project, now, row_limit } = context;
  const schema = await warehouse.schema();
  const ofProject = compilerProject({ project, now, schema });
  const compile: DialectReader['compile'] = (query, options = {}) => {
    const { placeholders = new Map(), rows, attr = null, found = new Map() } = options;
    const compiled = (): CompiledStatement =>
      withFieldPath(attr, () =>
        compileQuery(query, ofProject, {
          placeholders,
          found,
          rows: rows ?? { defaultLimit: row_limit, maxRows: row_limit },
        }),
      );
    return schema.inference?.compile(compiled) ?? compiled();
  };
  const find = async ({ searches }: CompiledStatement): Promise<Found> => {
    const found = new Map<string, readonly (string | null)[]>();
    for (const search of searches) {
      const ids: (string | null)[] = [];
      const receive = (rows: readonly TextRow[]) => ids.push(...rows.map(([id = null]) => id));
      const { sql: text, parameters: values, maxRows } = search;
      await warehouse.readRows({ text, values }, { maxRows, maxBytes: maxRows * bytesOfId, receive });
      found.set(searchKey(search), ids);
    }
    return found;
  };
  const read: DialectReader['read'] = async (query, options) => {
    const first = compile(query, options);
    const statement =
      first.searches.length === 0 ? first : compile(query, { ...options, found: await find(first) });
    const { limit, hasExtraRow, hasTotals, columns, cutBranches } = statement;
    const most = limit ?? row_limit;
    const rowsOf = async (
      { sql, parameters, memoryOperations }: CompiledStatement,
      maxRows: number,
    ): Promise<readonly TextRow[]> =>
      (await readRows(context, { text: sql, values: parameters, memoryOperations }, maxRows)).rows;
    const rows = await rowsOf(statement, most + Number(hasExtraRow) + Number(hasTotals));
    const dataRows = hasTotals ? rows.slice(0, -1) : rows;
    const formatters = columns.map(({ type }) => valueFormatter(type, project.timezone));
    const formatted = (row: TextRow): readonly unknown[] =>
      formatters.map((formatValue, index) => formatValue(row[index] ?? null));
    return {
      statement,
      rows: dataRows.slice(0, most).map(formatted),
      totals: rows.slice(dataRows.length).map(formatted),
      hasMore: dataRows.length > most,
      hasCutBranch:
        cutBranches !== null &&
        rows.length >= cutBranches.least &&
        (await rowsOf(compile(cutBranches.query), most)).length > 0,
    };
  };
  return { schema, compile, read };
}
