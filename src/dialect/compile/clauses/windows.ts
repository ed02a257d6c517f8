import {
  childrenOf,
  type Expression,
  findNodes,
  type Frame,
  type FrameBound,
  type Node,
  type Window,
} from '../../ast.ts';
import type { Scope } from '../../resolve/scope.ts';
import { identityOf, readFrom, syntaxIdentity, type Value } from '../../resolve/value.ts';
import { commaList, joinSql, rawSql, sql, type Sql } from '../../sql.ts';
import { isNumber, withNull } from '../../types.ts';
import type { Compiler, ExpressionUse } from '../compiler.ts';
import { coerce } from '../expressions/coerce.ts';
import { orderItems } from './query_expressions.ts';

/** A compiled window specification. */
export interface WindowSpecification {
  readonly sql: Sql;
  readonly values: readonly Value[];
  readonly partitionBy: readonly Sql[];
  /** Whether each of its frames has few rows. */
  readonly hasShortFrames: boolean;
  /** What it consists of besides the values. */
  readonly shape: unknown;
}

/** A window specification with the clauses of its base window. @throws DialectError */
export function windowSql(compiler: Compiler, window: Window, scope: Scope): WindowSpecification {
  const whole = withBase(window, scope, []);
  const partitions = whole.partitionBy.map((item) => compiler.value(item, scope));
  const order = orderItems(compiler, whole.orderBy, scope);
  const parts: Sql[] = [];
  if (partitions.length > 0) parts.push(sql`partition by ${commaList(partitions.map((item) => item.sql))}`);
  if (whole.orderBy.length > 0) parts.push(sql`order by ${order.sql}`);
  if (whole.frame !== null) parts.push(frameSql(compiler, whole.frame, order.values, scope));
  return {
    sql: sql`(${joinSql(parts, ' ')})`,
    values: [...partitions, ...order.values],
    partitionBy: partitions.map((item) => item.sql),
    hasShortFrames: isShort(whole.frame),
    shape: [partitions.length, order.directions, whole.frame === null ? null : syntaxIdentity(whole.frame)],
  };
}

/** The rows before and after the current one that a short frame may have. */
const maxShortOffset = 1_000;

function isShort(frame: Frame | null): boolean {
  if (frame?.unit !== 'rows') return false;
  const isNear = ({ direction, offset }: FrameBound): boolean =>
    direction === 'current row' || (offset?.kind === 'number' && Number(offset.text) <= maxShortOffset);
  return isNear(frame.first) && (frame.last === null || isNear(frame.last));
}

function withBase(window: Window, scope: Scope, seen: readonly string[]): Window {
  const { base } = window;
  if (base === null) return window;
  const named = scope.windows.get(base.text);
  if (named === undefined || seen.includes(base.text))
    throw scope.statement.error(`Unknown window \`${base.text}\`.`, base);
  const inner = withBase(named, scope, [...seen, base.text]);
  return {
    ...window,
    base: null,
    partitionBy: window.partitionBy.length > 0 ? window.partitionBy : inner.partitionBy,
    orderBy: window.orderBy.length > 0 ? window.orderBy : inner.orderBy,
    frame: window.frame ?? inner.frame,
  };
}

function frameSql(compiler: Compiler, frame: Frame, order: readonly Value[], scope: Scope): Sql {
  const bound = (one: FrameBound): Sql => boundSql(compiler, one, frame, order, scope);
  const from = bound(frame.first);
  const bounds = frame.last === null ? from : sql`between ${from} and ${bound(frame.last)}`;
  return sql`${rawSql(frame.unit)} ${bounds}`;
}

function boundSql(
  compiler: Compiler,
  { direction, offset }: FrameBound,
  { unit }: Frame,
  order: readonly Value[],
  scope: Scope,
): Sql {
  if (direction === 'current row') return sql`current row`;
  const words = rawSql(direction);
  if (offset === null) return sql`unbounded ${words}`;
  const value = compiler.value(offset, { ...scope, relations: [], context: 'LIMIT' });
  if (value.type.nullable || (!isNumber(value.type) && value.type.kind !== 'interval'))
    throw scope.statement.error('A frame bound must be a number or an interval.', offset);
  if (unit === 'range') return sql`${distance(value, offset, order, scope)} ${words}`;
  if (value.type.kind !== 'integer')
    throw scope.statement.error(`A ${unit.toUpperCase()} bound must be an integer.`, offset);
  return sql`${value.sql} ${words}`;
}

/** The offset of a RANGE bound, in the type that PostgreSQL requires for the sort key. */
function distance(value: Value, node: Expression, order: readonly Value[], { statement }: Scope): Sql {
  const [by, another] = order;
  if (by !== undefined && another === undefined) {
    if (isNumber(by.type) && isNumber(value.type) && value.type.kind !== 'float')
      return coerce(value, withNull(by.type, false), statement);
    if (by.type.kind === 'float' && value.type.kind === 'float') return value.sql;
    if (by.type.kind === 'date' || by.type.kind === 'datetime') {
      if (value.type.kind === 'interval') return value.sql;
      return by.type.kind === 'date'
        ? sql`make_interval(days => (${value.sql})::int4)`
        : sql`make_interval(secs => (${value.sql})::float8)`;
    }
  }
  throw statement.error(
    'A RANGE bound requires ORDER BY with one number or time.',
    node,
    'Use ROWS, or order by one number.',
  );
}

/** Expressions that PostgreSQL accepts around a window function in a select list. */
const allowedAroundWindow: ReadonlySet<Node['kind']> = new Set([
  ...(['alias', 'arithmetic', 'unary', 'logical', 'is_null', 'between', 'nullish', 'conditional'] as const),
  ...(['case', 'branch', 'cast', 'number', 'string', 'boolean', 'null', 'name', 'type'] as const),
]);

/** Window functions whose results are computed by a subquery: `groupUniqArray`, `sumArray`, `topK`. */
const computedBySubquery = /Array|^topK/;

/**
 * Whether window functions appear inside something that becomes a subquery, so that an inner query must compute
 * them.
 */
export function needsWindowSubquery(node: Node, value: Value, scope: Scope): boolean {
  return value.traits.window !== null && !isAllowedAroundWindow(node, scope);
}

function isAllowedAroundWindow(node: Node, scope: Scope): boolean {
  if (node.kind === 'call') return node.over !== null && !computedBySubquery.test(node.name.text);
  if (node.kind === 'field') {
    const aliased = node.path.length === 1 ? scope.aliases.get(node.path[0]?.text ?? '') : undefined;
    return aliased === undefined || scope.expandingAliases.includes(aliased)
      ? true
      : isAllowedAroundWindow(aliased, { ...scope, expandingAliases: [...scope.expandingAliases, aliased] });
  }
  if (node.kind === 'comparison' && node.operator.includes('in')) return false;
  if (node.kind !== 'comparison' && !allowedAroundWindow.has(node.kind)) return false;
  return childrenOf(node).every((child) => isAllowedAroundWindow(child, scope));
}

/**
 * Compiles an expression without window functions as a column of the inner query; undefined if it is computed
 * outside.
 */
export function windowSubqueryValue(
  compiler: Compiler,
  node: Expression,
  scope: Scope,
  use: ExpressionUse,
): Value | undefined {
  const { windowSubquery } = scope;
  if (
    windowSubquery === undefined ||
    node.kind === 'lambda' ||
    node.kind === 'tuple' ||
    node.kind === 'array'
  )
    return undefined;
  if (scope.lambdaParameters.size > 0 && readsLambdaParameter(node, scope)) return undefined;
  const value = compiler.value(node, withoutWindowSubquery(scope), use);
  if (value.traits.window !== null) return undefined;
  if (value.constant !== undefined) return value;
  return readFrom(value, { sql: windowSubquery.column(identityOf(value), value.sql) }, value.traits);
}

const innerScopes = new WeakMap<Scope, Scope>();

/** The scope of the inner query. There is one for each scope, so that it compiles each expression once. */
function withoutWindowSubquery(scope: Scope): Scope {
  const inner = innerScopes.get(scope) ?? { ...scope, windowSubquery: undefined };
  innerScopes.set(scope, inner);
  return inner;
}

/** Whether it reads a parameter of an enclosing lambda. */
export const readsLambdaParameter = (
  node: Expression,
  { lambdaParameters }: Pick<Scope, 'lambdaParameters'>,
): boolean =>
  findNodes(node, (inner): inner is Extract<Node, { kind: 'field' }> => inner.kind === 'field').some(
    ({ path }) => lambdaParameters.has(path[0]?.text ?? ''),
  );
