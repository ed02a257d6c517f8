import type { Query } from '../dialect/ast.ts';
import { compileQuery, type CompiledStatement, type RowLimits } from '../dialect/compile/compile_query.ts';
import type { Placeholders } from '../dialect/resolve/placeholders.ts';
import type { Schema } from '../dialect/schema.ts';
import type { Relations } from '../source/relations.ts';
import { withFieldPath } from './parse_fragments.ts';
import type { TextRow } from './query_connection.ts';
import type { QueryContext } from './query_kind.ts';
import { readRows } from './read_rows.ts';
import { valueFormatter } from './value_formatter.ts';
import { readSourceSchema } from './source_schema.ts';

/** The result of one dialect statement. */
export interface DialectRows {
  readonly statement: CompiledStatement;
  /** Formatted for JSON, at most `statement.limit` rows. */
  readonly rows: readonly (readonly unknown[])[];
  /** The row of WITH TOTALS, if any. */
  readonly totals: readonly (readonly unknown[])[];
  /** Whether rows beyond the limit exist. */
  readonly hasMore: boolean;
}

export interface ReadOptions {
  readonly placeholders?: Placeholders;
  /** The default and the maximum LIMIT; both are the context's `row_limit` by default. */
  readonly rows?: RowLimits;
  /** The path that errors name; null for exportd's own queries. */
  readonly attr?: string | null;
}

/** Compiles and runs dialect queries, given as text or as an AST, for one request. */
export interface DialectReader {
  readonly schema: Schema;
  /** @throws QueryError `dialect_error` */
  compile(query: string | Query, options?: ReadOptions): CompiledStatement;
  /** Compiles and runs a query. Statements run one after another. @throws QueryError */
  read(query: string | Query, options?: ReadOptions): Promise<DialectRows>;
}

/** Reads the source's schema for the queries of one request. @throws RelationNotFound */
export async function openDialectReader(context: QueryContext, relations: Relations): Promise<DialectReader> {
  const { connection, project, now, row_limit } = context;
  const schema = await readSourceSchema(connection, relations, project);
  const ofProject = {
    teamId: project.team_id,
    timezone: project.timezone,
    weekStartDay: project.week_start_day,
    now: now.toISOString(),
    schema,
  };
  const compile: DialectReader['compile'] = (query, { placeholders = new Map(), rows, attr = null } = {}) => {
    return withFieldPath(attr, () =>
      compileQuery(query, ofProject, {
        placeholders,
        rows: rows ?? { defaultLimit: row_limit, maxRows: row_limit },
      }),
    );
  };
  const read: DialectReader['read'] = async (query, options) => {
    const statement = compile(query, options);
    const { sql, parameters, limit, hasExtraRow, hasTotals, columns, memoryOperations } = statement;
    const most = limit ?? row_limit;
    const { rows } = await readRows(
      context,
      { text: sql, values: parameters, memoryOperations },
      most + Number(hasExtraRow) + Number(hasTotals),
    );
    const dataRows = hasTotals ? rows.slice(0, -1) : rows;
    const formatters = columns.map(({ type }) => valueFormatter(type, project.timezone));
    const formatted = (row: TextRow): readonly unknown[] =>
      formatters.map((formatValue, index) => formatValue(row[index] ?? null));
    return {
      statement,
      rows: dataRows.slice(0, most).map(formatted),
      totals: rows.slice(dataRows.length).map(formatted),
      hasMore: dataRows.length > most,
    };
  };
  return { schema, compile, read };
}
