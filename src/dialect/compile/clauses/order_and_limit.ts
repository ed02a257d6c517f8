import type { Expression, Limit, OrderItem } from '../../ast.ts';
import type { Scope } from '../../resolve/scope.ts';
import { type Constant, isSame, type Value } from '../../resolve/value.ts';
import { bind, commaList, sql, Sql } from '../../sql.ts';
import type { Type } from '../../types.ts';
import type { Compiler } from '../compiler.ts';

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
