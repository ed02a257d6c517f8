import type { Limit, Query } from '../ast.ts';
import { type ParseLimits } from '../parse_limits.ts';
import { parseQuery } from '../parser/parse.ts';
import { printQuery } from '../print/print.ts';
import { resolvePlaceholders, type Placeholders } from '../resolve/placeholders.ts';
import type { Scope } from '../resolve/scope.ts';
import type { TypedQuery } from '../resolve/value.ts';
import { type Project, Statement } from '../resolve/statement.ts';
import { QueryText } from '../query_text.ts';
import { bind, commaList, renderSql, Sql, sql } from '../sql.ts';
import { nameOfType, type Type } from '../types.ts';
import { rowBounds } from './limit_clause.ts';
import { memoryOperations } from './memory_operations.ts';
import { appendTotals } from './totals.ts';
import { compileAnyQuery, compiler, topScope } from './query_compiler.ts';

/** Row limits of a query result. */
export interface RowLimits {
  /** The limit of a query without LIMIT. */
  readonly defaultLimit: number;
  /** A larger LIMIT is reduced to it. */
  readonly maxRows: number;
}

export const defaultRowLimits: RowLimits = { defaultLimit: 100, maxRows: 10_000 };

export interface CompileOptions {
  readonly placeholders?: Placeholders;
  /** Null for all rows, as exports need them. */
  readonly rows?: RowLimits | null;
  readonly parse?: ParseLimits;
}

/** A column of the result. */
export interface ResultColumn {
  readonly name: string;
  readonly type: Type;
  /** The ClickHouse type name, such as `Nullable(String)`. */
  readonly typeName: string;
}

/** A statement ready to execute. Its columns are called `c1`, `c2`, …. */
export interface CompiledStatement {
  readonly sql: string;
  readonly parameters: readonly string[];
  readonly columns: readonly ResultColumn[];
  /** The canonical text of the executed query. */
  readonly printed: string;
  /** The maximum number of rows in the result; null for no limit. */
  readonly limit: number | null;
  /** Null if OFFSET is a share of all rows. */
  readonly offset: number | null;
  /**
   * Whether the statement returns one row more than `limit`, which shows if there are more rows. That is so if the
   * query has no LIMIT, if its LIMIT was reduced, or if its LIMIT does not fix the number of rows.
   */
  readonly hasExtraRow: boolean;
  /** See `memoryOperations`. */
  readonly memoryOperations: number;
  /** Whether a totals row, not counted by `limit`, follows all other rows. */
  readonly hasTotals: boolean;
}

/**
 * Compiles a dialect query to one PostgreSQL statement. Every relation is filtered by the project's team, and the
 * statement contains no user values. A tree is printed first, so that errors refer to its text.
 * @throws DialectError
 */
export const compileQuery = (
  query: string | Query,
  project: Project,
  options: CompileOptions = {},
): CompiledStatement => compileTypedQuery(query, project, options).statement;

/** A compiled query with its typed representation. */
export interface TypedStatement {
  readonly typed: TypedQuery;
  readonly statement: CompiledStatement;
}

/** The same with the typed representation. @throws DialectError */
export function compileTypedQuery(
  query: string | Query,
  project: Project,
  options: CompileOptions = {},
): TypedStatement {
  const text = typeof query === 'string' ? query : printQuery(query);
  const queryText = new QueryText(text);
  const parsed = parseQuery(text, options.parse);
  const resolved = resolvePlaceholders(parsed, options.placeholders ?? new Map(), queryText);
  const statement = new Statement(project, queryText);
  const scope = topScope(statement);
  const rows = options.rows === undefined ? defaultRowLimits : options.rows;
  const bounded =
    rows === null ? unbounded(resolved) : boundedQuery(resolved, withoutTotalsRow(resolved, rows), scope);
  const compiled = compileAnyQuery(bounded.executed, scope);
  const capped =
    bounded.rowCap === null
      ? compiled.sql
      : sql`select * from (${compiled.sql}) as bounded limit ${bind(String(bounded.rowCap), 'int8')}`;
  const withTotals =
    compiled.totals === undefined ? capped : appendTotals(capped, compiled.totals, compiled.columns.length);
  // Parenthesized, because the query may start with its own WITH.
  const common = statement.commonTables.map((table) => sql`${table.name} as (${table.query})`);
  const whole = common.length === 0 ? withTotals : sql`with ${commaList(common)} (${withTotals})`;
  statement.checkLength(whole, resolved);
  const { text: rendered, parameters } = renderSql(whole);
  return {
    typed: compiled.typed,
    statement: {
      sql: rendered,
      parameters,
      columns: compiled.columns.map(({ name, type }) => ({
        name,
        type,
        typeName: nameOfType(type, project.timezone),
      })),
      printed: printQuery(bounded.reported),
      limit: bounded.limit,
      offset: bounded.offset,
      hasExtraRow: bounded.rowCap !== null || bounded.executed !== bounded.reported,
      memoryOperations: memoryOperations(resolved),
      hasTotals: compiled.totals !== undefined,
    },
  };
}

interface BoundedQuery {
  /** The query with the LIMIT of the result. */
  readonly reported: Query;
  /** The same query with one extra row where more rows must be detected. */
  readonly executed: Query;
  readonly limit: number | null;
  readonly offset: number | null;
  /** The number of rows to read from a query whose LIMIT does not fix it. */
  readonly rowCap: number | null;
}

const unbounded = (query: Query): BoundedQuery => ({
  reported: query,
  executed: query,
  limit: null,
  offset: 0,
  rowCap: null,
});

/** The totals row counts toward the maximum. */
const withoutTotalsRow = (query: Query, { defaultLimit, maxRows }: RowLimits): RowLimits =>
  query.kind === 'select' && query.groupBy?.withTotals
    ? { defaultLimit, maxRows: maxRows - 1 }
    : { defaultLimit, maxRows };

function boundedQuery(query: Query, rows: RowLimits, scope: Scope): BoundedQuery {
  const { limit } = query;
  const bounds = rowBounds(compiler, limit, scope);
  const requested = bounds.count;
  const offset = bounds.offset instanceof Sql ? null : Number(bounds.offset ?? 0n);
  if (requested instanceof Sql || limit?.withTies)
    return { reported: query, executed: query, limit: rows.maxRows, offset, rowCap: rows.maxRows + 1 };
  if (requested !== null && requested <= BigInt(rows.maxRows))
    return { reported: query, executed: query, limit: Number(requested), offset, rowCap: null };
  const isWhole = query.kind === 'select' && requested === null;
  const count = isWhole ? rows.defaultLimit : rows.maxRows;
  const branches =
    query.kind === 'set_operation' && requested === null ? withBranchLimits(query, rows) : query;
  return {
    reported: withCount(branches, count),
    executed: withCount(branches, count + 1),
    limit: count,
    offset,
    rowCap: null,
  };
}

/** Gives each query of a UNION without a LIMIT the default limit; the maximum applies to all of them together. */
function withBranchLimits(query: Extract<Query, { kind: 'set_operation' }>, rows: RowLimits): Query {
  const operands = query.operands.map((operand) =>
    operand.limit === null ? withCount(operand, rows.defaultLimit) : operand,
  );
  return { ...query, operands };
}

function withCount(query: Query, count: number): Query {
  const { start, end } = query;
  const limit: Limit = query.limit ?? {
    kind: 'limit',
    count: null,
    percent: false,
    offset: null,
    withTies: false,
    start,
    end,
  };
  return { ...query, limit: { ...limit, count: { kind: 'number', text: String(count), start, end } } };
}
