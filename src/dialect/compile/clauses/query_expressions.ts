import type { Cte, Expression, Limit, OrderItem, Query, SetOperation } from '../../ast.ts';
import { identifiedRelation, queryRelation } from '../../resolve/relation.ts';
import type { CteScope, NamedQuery, Scope } from '../../resolve/scope.ts';
import { type Constant, derive, isSame, type TypedQuery, type Value } from '../../resolve/value.ts';
import { bind, commaList, joinSql, rawSql, Sql, sql } from '../../sql.ts';
import { commonTypeOf, nameOfType, type Type, zoneOf } from '../../types.ts';
import { columnAlias, type CompiledColumn, type CompiledQuery, type Compiler } from '../compiler.ts';
import { coerce } from '../expressions/coerce.ts';
import { otherType } from '../expressions/readings.ts';

/**
 * Nulls come last in both directions by default. The clause is omitted for non-null datetimes, so that the newest
 * rows are read from the end of an index.
 */
export function sortDirection(item: OrderItem, type?: Type): Sql {
  if (item.descending && item.nulls === null && type?.kind === 'datetime' && !type.nullable)
    return sql` desc`;
  const down = item.descending ? sql` desc` : sql``;
  return item.nulls === 'first' ? sql`${down} nulls first` : sql`${down} nulls last`;
}

/** A sort key. Strings are sorted by bytes. A bare `true` would be read as a column ordinal. */
export function sortKey(fragment: Sql, type: Type): Sql {
  if (type.kind === 'string') return sql`(${fragment}) collate "C"`;
  return type.kind === 'boolean' ? sql`(${fragment})::bool` : fragment;
}

/** Compiled sort keys. */
interface OrderItems {
  readonly sql: Sql;
  readonly values: readonly Value[];
  /** Whether each is descending, and where its nulls are. */
  readonly directions: readonly unknown[];
}

/**
 * The ORDER BY items of an aggregate or a window.
 * @param shared values whose SQL equal items must have; PostgreSQL compares the keys of a DISTINCT aggregate by their SQL
 */
export function orderItems(
  compiler: Compiler,
  items: readonly OrderItem[],
  scope: Scope,
  shared: readonly Value[] = [],
): OrderItems {
  const values = items.map((item) => {
    if (item.fill !== null) throw scope.statement.error('WITH FILL is not supported.', item.fill);
    const value = compiler.value(item.expression, scope);
    return shared.find((one) => isSame(one, value)) ?? value;
  });
  const fragments = items.map((item, index) => {
    const value = values[index];
    return value === undefined ? sql`` : sql`${sortKey(value.sql, value.type)}${sortDirection(item)}`;
  });
  return {
    sql: commaList(fragments),
    values,
    directions: items.map(({ descending, nulls }) => [descending, nulls]),
  };
}

/** A row count. @throws DialectError unless it is a constant non-negative integer */
export function integerConstant(compiler: Compiler, node: Expression, scope: Scope, word: string): bigint {
  return requireRowCount(constantOf(compiler, node, scope), node, scope, word);
}

/** A row count, a share of all rows from 0 to 1, or null if absent. */
type RowBound = bigint | Sql | null;

interface RowBounds {
  readonly count: RowBound;
  readonly offset: RowBound;
}

/**
 * The bounds of LIMIT and OFFSET.
 * @throws DialectError unless each is a constant integer, a fraction below 1 or a percentage
 */
export function rowBounds(compiler: Compiler, limit: Limit | null, scope: Scope): RowBounds {
  if (limit === null) return { count: null, offset: null };
  const { count, percent, offset } = limit;
  const bound = (node: Expression | null, word: string): RowBound => {
    if (node === null) return null;
    const constant = constantOf(compiler, node, scope);
    const isShare = typeof constant === 'number' && constant > 0 && constant < 1;
    if (isShare) return bind(String(constant), 'numeric');
    if (typeof constant === 'number')
      throw scope.statement.error(
        `${word} must be a non-negative integer or a fraction below 1 such as 0.1.`,
        node,
      );
    return requireRowCount(constant, node, scope, word);
  };
  return {
    count: count !== null && percent ? percentage(compiler, count, scope) : bound(count, 'LIMIT'),
    offset: bound(offset, 'OFFSET'),
  };
}

function percentage(compiler: Compiler, node: Expression, scope: Scope): Sql {
  const percent = constantOf(compiler, node, scope);
  const isNumber = typeof percent === 'number' || typeof percent === 'bigint';
  if (!isNumber || !(percent >= 0 && percent <= 100))
    throw scope.statement.error('PERCENT must be a number from 0 to 100.', node);
  return sql`${bind(String(percent), 'numeric')} * 0.01`;
}

function constantOf(compiler: Compiler, node: Expression, scope: Scope): Constant | undefined {
  const { constant } = compiler.value(node, {
    ...scope,
    relations: [],
    aliases: new Map(),
    grouping: null,
    context: 'LIMIT',
  });
  return constant;
}

function requireRowCount(
  constant: Constant | undefined,
  node: Expression,
  { statement }: Scope,
  word: string,
): bigint {
  if (typeof constant !== 'bigint' || constant < 0n)
    throw statement.error(`${word} must be a non-negative integer.`, node);
  return constant;
}

/** Whether LIMIT or OFFSET is a share of all rows, which must then be counted. */
export function isShareOfAllRows(compiler: Compiler, limit: Limit | null, scope: Scope): boolean {
  const { count, offset } = rowBounds(compiler, limit, scope);
  return count instanceof Sql || offset instanceof Sql;
}

/** LIMIT and OFFSET with a leading space. @param all the name of all rows, for shares */
export function limitSql(
  compiler: Compiler,
  limit: Limit | null,
  isOrdered: boolean,
  scope: Scope,
  all: Sql = sql``,
): Sql {
  if (limit === null) return sql``;
  const rows = (bound: RowBound): Sql | null => {
    if (bound === null) return null;
    if (typeof bound === 'bigint') return bind(String(bound), 'int8');
    return sql`(select ceil(count(*) * ${bound})::int8 from ${all})`;
  };
  const { count, offset } = rowBounds(compiler, limit, scope);
  const [first, offsetRows] = [rows(count), rows(offset)];
  const offsetClause = offsetRows === null ? sql`` : sql` offset ${offsetRows}`;
  if (first === null) return offsetClause;
  if (!limit.withTies) return sql` limit ${first}${offsetClause}`;
  if (!isOrdered) throw scope.statement.error('WITH TIES requires ORDER BY.', limit);
  return sql`${offsetClause} fetch first (${first}) rows with ties`;
}

/** Rows to sort and limit. */
interface SortedRows {
  readonly columns: Sql;
  /** The query of all rows. */
  readonly rows: Sql;
  /** Their alias in `columns` and `sorted`. */
  readonly alias: Sql;
  /** ORDER BY with a leading space; empty without one. */
  readonly sorted: Sql;
}

/** Applies LIMIT and OFFSET. For shares, all rows are computed once in a CTE and read twice. */
export function limitedRows(
  compiler: Compiler,
  limit: Limit | null,
  { columns, rows, alias, sorted }: SortedRows,
  scope: Scope,
): Sql {
  const limitClause = limitSql(compiler, limit, !sorted.isEmpty, scope, alias);
  return isShareOfAllRows(compiler, limit, scope)
    ? sql`with ${alias} as (${rows}) select ${columns} from ${alias}${sorted}${limitClause}`
    : sql`select ${columns} from (${rows}) as ${alias}${sorted}${limitClause}`;
}

/** The scope of a WITH clause. Each CTE sees the ones before it and those of outer queries. */
export function cteScope(ctes: readonly Cte[], outer: CteScope | null): CteScope | null {
  let scope = outer;
  for (const cte of ctes) {
    const queries = new Map<string, NamedQuery>();
    const expressions = new Map<string, Expression>();
    if (cte.kind === 'query_cte') queries.set(cte.name.text, { query: cte.query, scope });
    else expressions.set(cte.name.text, cte.expression);
    scope = { queries, expressions, outer: scope };
  }
  return scope;
}

/** The WITH clause of the first operand, which applies to all operands of a set operation. */
function leadingCtes(query: Query): readonly Cte[] {
  if (query.kind === 'select') return query.ctes;
  const [first] = query.operands;
  return first === undefined ? [] : leadingCtes(first);
}

/**
 * Compiles UNION, INTERSECT and EXCEPT. Columns are matched by position and converted to common types; names come
 * from the first query.
 */
export function compileSetOperation(
  compiler: Compiler,
  operation: SetOperation,
  outer: Scope,
): CompiledQuery {
  const { statement } = outer;
  const scope: Scope = { ...outer, ctes: cteScope(leadingCtes(operation), outer.ctes) };
  const operands = operation.operands.map((operand) => compiler.query(operand, scope));
  const [first] = operands;
  if (first === undefined) throw statement.error('A set operation requires at least two queries.', operation);
  const columns = first.columns.map((column, index): CompiledColumn => {
    const types = operands.flatMap((operand) => operand.columns[index]?.type ?? []);
    const type = commonTypeOf(types) ?? commonTypeOf(types.map((one) => otherType(one, statement) ?? one));
    const lastOperand = operation.operands.at(-1) ?? operation;
    if (type === null)
      throw statement.error(
        `Column ${index + 1} has no common type: ${types.map((one) => nameOfType(one)).join(', ')}.`,
        lastOperand,
      );
    const zones = new Set(types.flatMap((one) => (one.kind === 'datetime' ? [zoneOf(one)] : [])));
    if (zones.size > 1)
      throw statement.error(
        `The times in column ${index + 1} have different time zones.`,
        lastOperand,
        'Use toTimeZone(…) in each query.',
      );
    return { name: column.name, type };
  });
  operands.forEach((operand, index) => {
    if (operand.columns.length !== columns.length)
      throw statement.error(
        `The queries of ${operation.operator.toUpperCase()} have ${columns.length} and ${operand.columns.length} columns.`,
        operation.operands[index] ?? operation,
      );
  });
  const fragments = operands.map((operand) => sql`(${withColumnTypes(operand, columns, scope)})`);
  const joined = joinSql(fragments, ` ${operation.operator.replace(' distinct', '')} `);
  const typed: TypedQuery = {
    operation: operation.operator,
    sources: operands.map((operand) => operand.typed),
    clauses: [],
  };
  if (operation.orderBy.length === 0 && operation.limit === null)
    return { sql: joined, columns, tableCount: 1, typed };
  const alias = statement.uniqueName('joined');
  const selected = commaList(columns.map((_, index) => sql`${alias}.${columnAlias(index + 1)}`));
  const sorted = orderSql(compiler, operation.orderBy, alias, columns, scope);
  const rows = { columns: selected, rows: joined, alias, sorted };
  return { sql: limitedRows(compiler, operation.limit, rows, scope), columns, tableCount: 1, typed };
}

function withColumnTypes(operand: CompiledQuery, columns: readonly CompiledColumn[], scope: Scope): Sql {
  const same = operand.columns.every(({ type }, index) => type.kind === columns[index]?.type.kind);
  if (same) return operand.sql;
  const alias = scope.statement.uniqueName('part');
  const selected = columns.map(({ type }, index) => {
    const own = operand.columns[index]?.type ?? type;
    const value = derive(`operand column ${index + 1}`, [], own, sql`${alias}.${columnAlias(index + 1)}`);
    return sql`${coerce(value, type, scope.statement)} as ${columnAlias(index + 1)}`;
  });
  return sql`select ${commaList(selected)} from (${operand.sql}) as ${alias}`;
}

function orderSql(
  compiler: Compiler,
  items: readonly OrderItem[],
  alias: Sql,
  columns: readonly CompiledColumn[],
  scope: Scope,
): Sql {
  if (items.length === 0) return sql``;
  const { statement } = scope;
  const relation = identifiedRelation(queryRelation(null, sql``, alias, columns), statement.nextNumber());
  const inside: Scope = {
    ...scope,
    relations: [relation],
    aliases: new Map(),
    grouping: null,
    context: 'JOIN',
  };
  const fragments = items.map((item) => {
    if (item.fill !== null) throw scope.statement.error('WITH FILL is not supported.', item.fill);
    const { expression } = item;
    const isOrdinal = expression.kind === 'number' && /^\d+$/.test(expression.text);
    if (isOrdinal && Number(expression.text) > columns.length)
      throw scope.statement.error(`SELECT has no column ${expression.text}.`, expression);
    if (isOrdinal) return sql`${rawSql(String(Number(expression.text)))}${sortDirection(item)}`;
    const value = compiler.value(expression, inside);
    return sql`${sortKey(value.sql, value.type)}${sortDirection(item)}`;
  });
  return sql` order by ${commaList(fragments)}`;
}
