import type { Expression, GroupBy, Query, Select } from '../dialect/ast.ts';
import { buildSelect } from '../dialect/ast_builders.ts';
import { type CompiledStatement, compileQuery, type RowLimits } from '../dialect/compile/compile_query.ts';
import type { Placeholders } from '../dialect/resolve/placeholders.ts';
import type { Project } from '../dialect/resolve/statement.ts';
import type { Schema } from '../dialect/schema.ts';
import type { Relations } from '../source/relations.ts';
import { withFieldPath } from './parse_fragments.ts';
import type { QueryStatement, ReadColumns, TextRow } from './query_connection.ts';
import { QueryError } from './query_errors.ts';
import type { QueryContext, QueryProject } from './query_kind.ts';
import { readSourceSchema } from './source_schema.ts';
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

interface ReadOptions {
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
});

/** Reads the source's schema for the queries of one request. @throws RelationNotFound */
export async function openDialectReader(context: QueryContext, relations: Relations): Promise<DialectReader> {
  const { connection, project, now, row_limit } = context;
  const schema = await readSourceSchema(connection, relations, project);
  const ofProject = compilerProject({ project, now, schema });
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

/** A condition and the path of its field in the request. */
export interface RequestedCondition {
  readonly condition: Expression;
  readonly attr: string;
}

/** A SELECT built from the items of a request's lists, together with those items. */
export interface SelectWithItems {
  readonly select: Select;
  /** The columns of each entry of `select`, and its GROUP BY keys in a grouped query. */
  readonly entries: readonly {
    readonly columns: readonly Expression[];
    readonly keys: readonly Expression[];
  }[];
  /** Conditions for WHERE. */
  readonly conditions: readonly RequestedCondition[];
  /** Conditions for HAVING. */
  readonly groupConditions: readonly RequestedCondition[];
  /** How many ORDER BY items come from the request; they come first. */
  readonly ordered: number;
}

/**
 * Runs a SELECT. If the dialect rejects it, compiles its items one after another so that the error names the first item
 * that fails.
 * @throws QueryError
 */
export async function readWithItemErrors(
  reader: DialectReader,
  items: SelectWithItems,
  options: ReadOptions,
): ReturnType<DialectReader['read']> {
  try {
    return await reader.read(items.select, options);
  } catch (error) {
    if (error instanceof QueryError && error.code === 'dialect_error')
      for (const { attr, select } of itemStatements(items)) reader.compile(select, { ...options, attr });
    throw error;
  }
}

function itemStatements({
  select,
  entries,
  conditions,
  groupConditions,
  ordered,
}: SelectWithItems): readonly { readonly attr: string; readonly select: Select }[] {
  const columns: Select = { ...select, where: null, having: null, orderBy: [] };
  const counted = buildSelect('select count() from events');
  return [
    ...entries.map((_entry, index) => {
      const selected = entries.slice(0, index + 1);
      return {
        attr: `query__select__${index}`,
        select: {
          ...columns,
          columns: selected.flatMap((entry) => entry.columns),
          groupBy: groupedBy(
            select.groupBy,
            selected.flatMap((entry) => entry.keys),
          ),
        },
      };
    }),
    { attr: 'query__select', select: columns },
    ...conditions.map(({ attr, condition }) => ({ attr, select: { ...columns, where: condition } })),
    ...groupConditions.map(({ attr, condition }) => ({ attr, select: { ...counted, having: condition } })),
    { attr: 'query__where', select: { ...select, orderBy: [] } },
    ...select.orderBy.slice(0, ordered).map((item, index) => ({
      attr: `query__orderBy__${index}`,
      select: { ...columns, orderBy: [item] },
    })),
    { attr: 'query__orderBy', select },
  ];
}

const groupedBy = (groupBy: GroupBy | null, items: readonly Expression[]): GroupBy | null =>
  groupBy === null || items.length === 0 ? null : { ...groupBy, items };
