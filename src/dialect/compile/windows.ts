import type { Frame, FrameBound, Window } from '../ast.ts';
import type { Scope } from '../resolve/scope.ts';
import type { Value } from '../resolve/value.ts';
import { commaList, joinSql, ownText, sql, type Sql } from '../sql.ts';
import type { Compiler } from './compiler.ts';
import { orderItems } from './order_items.ts';

/** A window in its brackets, with what a named one that it goes on from says. @throws DialectError */
export function windowSql(
  compiler: Compiler,
  window: Window,
  scope: Scope,
): { readonly sql: Sql; readonly values: readonly Value[] } {
  const whole = withBase(window, scope, []);
  const partitions = whole.partitionBy.map((item) => compiler.value(item, scope));
  const order = orderItems(compiler, whole.orderBy, scope);
  const parts: Sql[] = [];
  if (partitions.length > 0) parts.push(sql`partition by ${commaList(partitions.map((item) => item.sql))}`);
  if (whole.orderBy.length > 0) parts.push(sql`order by ${order.sql}`);
  if (whole.frame !== null) parts.push(frameSql(compiler, whole.frame, scope));
  return { sql: sql`(${joinSql(parts, ' ')})`, values: [...partitions, ...order.values] };
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

function frameSql(compiler: Compiler, { unit, first, last }: Frame, scope: Scope): Sql {
  const from = boundSql(compiler, first, scope);
  const bounds = last === null ? from : sql`between ${from} and ${boundSql(compiler, last, scope)}`;
  return sql`${ownText(unit)} ${bounds}`;
}

function boundSql(compiler: Compiler, bound: FrameBound, scope: Scope): Sql {
  if (bound.direction === 'current row') return sql`current row`;
  const words = ownText(bound.direction);
  if (bound.offset === null) return sql`unbounded ${words}`;
  const value = compiler.value(bound.offset, { ...scope, relations: [], phase: 'LIMIT' });
  if (value.type.kind !== 'integer' && value.type.kind !== 'interval' && value.type.kind !== 'float')
    throw scope.statement.error('A bound of a frame is a number or an interval.', bound.offset);
  return sql`${value.sql} ${words}`;
}
