import type { Limit, Query } from '../ast.ts';
import { type ParseLimits } from '../limits.ts';
import { parseQuery } from '../parser/parse.ts';
import { printQuery } from '../print/print.ts';
import { resolvePlaceholders, type Placeholders } from '../resolve/placeholders.ts';
import type { Scope } from '../resolve/scope.ts';
import { type Project, Statement } from '../resolve/statement.ts';
import { QueryText } from '../query_text.ts';
import { bind, commaList, renderSql, Sql, sql } from '../sql.ts';
import { nameOfType, type Type } from '../types.ts';
import { rowBounds } from './limits.ts';
import { followedByTotals } from './totals.ts';
import { compileAnyQuery, compiler, topScope } from './query_compiler.ts';

/** How many rows a query may give. */
export interface RowLimits {
  /** Of a query without LIMIT. */
  readonly defaultLimit: number;
  /** A larger LIMIT is cut to it. */
  readonly maxRows: number;
}

export const defaultRowLimits: RowLimits = { defaultLimit: 100, maxRows: 10_000 };

export interface CompileOptions {
  readonly placeholders?: Placeholders;
  /** Null for all rows, as an export wants them. */
  readonly rows?: RowLimits | null;
  readonly parse?: ParseLimits;
}

/** A column of the answer. */
export interface ResultColumn {
  readonly name: string;
  readonly type: Type;
  /** As analysts know it, such as `Nullable(String)`. */
  readonly typeName: string;
}

/** A statement that is ready to run; its columns are called `c1`, `c2`, …. */
export interface CompiledStatement {
  readonly sql: string;
  readonly parameters: readonly string[];
  readonly columns: readonly ResultColumn[];
  /** The canonical text of the query that is run. */
  readonly printed: string;
  /** The most rows that the answer holds; null for no limit. */
  readonly limit: number | null;
  /** Null for a share of all rows. */
  readonly offset: number | null;
  /**
   * Whether one row more than `limit` is asked for, which says whether there are more: without a LIMIT in the query,
   * where it was cut, and where it does not say how many rows it leaves.
   */
  readonly hasExtraRow: boolean;
  /** Whether a row of totals comes behind all others, which `limit` does not count. */
  readonly hasTotals: boolean;
}

/**
 * Compiles a query of the dialect to one statement of PostgreSQL, whose every relation is filtered by the project's team
 * and which holds no value of a user. A tree is printed first, so that errors show where in that text something is wrong.
 * @throws DialectError
 */
export function compileQuery(
  query: string | Query,
  project: Project,
  options: CompileOptions = {},
): CompiledStatement {
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
    compiled.totals === undefined
      ? capped
      : followedByTotals(capped, compiled.totals, compiled.columns.length);
  // In brackets, since the query may begin with a WITH of its own.
  const common = statement.commonTables.map((table) => sql`${table.name} as (${table.query})`);
  const whole = common.length === 0 ? withTotals : sql`with ${commaList(common)} (${withTotals})`;
  statement.checkSize(whole, resolved);
  const { text: rendered, parameters } = renderSql(whole);
  return {
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
    hasTotals: compiled.totals !== undefined,
  };
}

interface BoundedQuery {
  /** With the LIMIT that the answer has. */
  readonly reported: Query;
  /** With one row more, where it has to be known whether there is one. */
  readonly executed: Query;
  readonly limit: number | null;
  readonly offset: number | null;
  /** How many rows are read of a query whose LIMIT does not say how many it leaves. */
  readonly rowCap: number | null;
}

const unbounded = (query: Query): BoundedQuery => ({
  reported: query,
  executed: query,
  limit: null,
  offset: 0,
  rowCap: null,
});

/** The row of totals is one of the most that an answer may have. */
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

/** Each query of a UNION without a LIMIT has one of its own; all of them together have the largest. */
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
