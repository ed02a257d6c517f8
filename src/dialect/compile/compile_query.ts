import { type Call, type Limit, type Node, type NumberLiteral, type Query, walk } from '../ast.ts';
import { QueryText } from '../query_text.ts';
import { findFunction } from '../functions/registry.ts';
import type { ParseLimits } from '../parser/cursor.ts';
import { parseQuery } from '../parser/queries.ts';
import { printQuery } from '../print.ts';
import { type Placeholders, resolvePlaceholders } from '../resolve/placeholders.ts';
import { LateralJoins, type Scope } from '../resolve/scope.ts';
import { type Found, type Project, type Search, Statement } from '../resolve/statement.ts';
import type { TypedQuery, Value } from '../resolve/value.ts';
import { bind, commaList, renderSql, Sql, sql } from '../sql.ts';
import { nameOfType, type Type } from '../types.ts';
import { appendTotals, rejectTotals } from './clauses/select_items.ts';
import { rowBounds, compileSetOperation } from './clauses/query_expressions.ts';
import { compileSelect } from './clauses/select.ts';
import type { CompiledQuery, Compiler } from './compiler.ts';
import { expressionValue } from './expressions/expressions.ts';

/** All compilation rules. */
export const compiler: Compiler = {
  value: (node, scope, use = 'value') => expressionValue(compiler, node, scope, use),
  query: (query, scope) => {
    rejectTotals(query, scope);
    return compileAnyQuery(query, scope);
  },
};

/** Compiles a SELECT or a set operation. @throws DialectError */
function compileAnyQuery(query: Query, scope: Scope): CompiledQuery {
  return query.kind === 'select'
    ? compileSelect(compiler, query, scope)
    : compileSetOperation(compiler, query, scope);
}

/** The empty scope around a whole query. */
export const topScope = (statement: Statement): Scope => ({
  statement,
  context: 'select',
  enclosingAggregate: null,
  relations: [],
  usingColumns: new Map(),
  lateralJoins: new LateralJoins(),
  outerRelations: [],
  aliases: new Map(),
  arrayJoinColumns: new Map(),
  ctes: null,
  lambdaParameters: new Map(),
  lambdaDepth: 0,
  expandingAliases: [],
  grouping: null,
  windows: new Map(),
});

/**
 * The number of sorts and hash tables that PostgreSQL may keep in memory at the same time for a query, each of up to
 * `work_mem`. An estimate: it counts clauses and calls, not the nodes of the plan.
 */
function memoryOperations(query: Query): number {
  let operations = 0;
  walk(query, {
    enter: (node) => {
      operations += operationsOf(node);
      return true;
    },
  });
  return operations;
}

function operationsOf(node: Node): number {
  switch (node.kind) {
    case 'select':
      return (
        Number(node.distinct) +
        Number(node.groupBy !== null) +
        Number(node.orderBy.length > 0) +
        Number(node.limitBy !== null)
      );
    case 'set_operation':
    case 'join':
      return 1;
    case 'call':
      return operationsOfCall(node);
    default:
      return 0;
  }
}

/** A set in a gathering aggregate is sorted twice: its size is computed first. */
function operationsOfCall({ name, distinct, orderBy, over }: Call): number {
  if (over !== null) return 1;
  const found = findFunction(name.text);
  if (found?.definition.kind !== 'aggregate') return 0;
  const { definition, combinators } = found;
  const isDistinct = distinct || combinators.includes('Distinct');
  if (!isDistinct && !definition.sorts && orderBy.length === 0) return 0;
  return definition.gathers !== null && (isDistinct || definition.gathers === 'distinct') ? 2 : 1;
}

/** Row limits of a query result. */
export interface RowLimits {
  /** The limit of a query without LIMIT. */
  readonly defaultLimit: number;
  /** A larger LIMIT is reduced to it. */
  readonly maxRows: number;
}

const defaultRowLimits: RowLimits = { defaultLimit: 100, maxRows: 10_000 };

export interface CompileOptions {
  readonly placeholders?: Placeholders;
  /** Null for all rows, as exports need them. */
  readonly rows?: RowLimits | null;
  readonly parse?: ParseLimits;
  /** The rows of the query's searches, by `searchKey`. */
  readonly found?: Found;
}

/** A column of the result. */
interface ResultColumn {
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
  /**
   * For queries of a set operation that have the default limit: a query with rows if one of them has more, and how many rows
   * the statement returns in that case at least.
   */
  readonly cutBranches: { readonly query: Query; readonly least: number } | null;
  /** See `memoryOperations`. */
  readonly memoryOperations: number;
  /** What to run first, for a faster statement. This one returns the same rows. */
  readonly searches: readonly Search[];
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
interface TypedStatement {
  readonly typed: TypedQuery;
  readonly statement: CompiledStatement;
}

/** The same with the typed representation. @throws DialectError */
function compileTypedQuery(
  query: string | Query,
  project: Project,
  options: CompileOptions = {},
): TypedStatement {
  const text = typeof query === 'string' ? query : printQuery(query);
  const queryText = new QueryText(text);
  const parsed = parseQuery(text, options.parse);
  const resolved = resolvePlaceholders(parsed, options.placeholders ?? new Map(), queryText);
  const statement = new Statement(project, queryText, options.found);
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
      cutBranches: rows === null ? null : cutBranches(resolved, rows),
      memoryOperations: memoryOperations(resolved),
      searches: statement.searches,
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

function cutBranches(query: Query, { defaultLimit }: RowLimits): CompiledStatement['cutBranches'] {
  if (query.kind !== 'set_operation' || query.limit !== null) return null;
  const { operator, operands } = query;
  const isLimited = operands.some(({ limit }) => limit === null);
  if (!isLimited) return null;
  // All queries stay, because the first one declares the CTEs of all.
  const beyond = operands.map((operand) =>
    operand.limit === null
      ? withCount(operand, 1, defaultLimit)
      : withCount({ ...operand, limit: null }, 0, 0),
  );
  return {
    query: { ...query, operator: 'union all', operands: beyond, orderBy: [] },
    least: operator === 'union all' ? defaultLimit : 0,
  };
}

function withCount(query: Query, count: number, offset: number | null = null): Query {
  const { start, end } = query;
  const number = (value: number): NumberLiteral => ({ kind: 'number', text: String(value), start, end });
  const limit: Limit = query.limit ?? {
    kind: 'limit',
    count: null,
    percent: false,
    offset: null,
    withTies: false,
    start,
    end,
  };
  return {
    ...query,
    limit: { ...limit, count: number(count), ...(offset !== null && { offset: number(offset) }) },
  };
}

/** A node of the typed representation: a query, a clause, or an operation with the type of its result. */
interface ExplainedNode {
  readonly operation: string;
  /** The ClickHouse name of the type; null for queries and clauses. */
  readonly type: string | null;
  readonly operands: readonly ExplainedNode[];
}

/** A query as the compiler understands it, with its statement. */
export interface ExplainedQuery {
  readonly tree: ExplainedNode;
  readonly statement: CompiledStatement;
}

/**
 * Compiles a query and describes its typed representation. A query that is read several times is described once.
 * @throws DialectError
 */
export function explainQuery(
  query: string | Query,
  project: Project,
  options: CompileOptions = {},
): ExplainedQuery {
  const { typed, statement } = compileTypedQuery(query, project, options);
  const described = new Set<TypedQuery>();
  const ofQuery = (one: TypedQuery): ExplainedNode => {
    if (described.has(one)) return { operation: `${one.operation}, see above`, type: null, operands: [] };
    described.add(one);
    const from = one.sources.map(ofQuery);
    const clauses = one.clauses.map(({ name, values }) => ({
      operation: name,
      type: null,
      operands: values.map(ofValue),
    }));
    return { operation: one.operation, type: null, operands: [...from, ...clauses] };
  };
  const ofValue = ({ operation, type, operands, query: inner }: Value): ExplainedNode => ({
    operation,
    type: nameOfType(type, project.timezone),
    operands: [...operands.map(ofValue), ...(inner === undefined ? [] : [ofQuery(inner)])],
  });
  return { tree: ofQuery(typed), statement };
}

/** The tree as lines: one node each, indented below the node that reads it. */
export const explainedLines = (
  { operation, type, operands }: ExplainedNode,
  depth = 0,
): readonly string[] => [
  `${'  '.repeat(depth)}${operation}${type === null ? '' : `: ${type}`}`,
  ...operands.flatMap((operand) => explainedLines(operand, depth + 1)),
];
