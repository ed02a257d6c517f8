import type { Expression } from '../ast.ts';
import type { Node } from '../ast_node.ts';
import type { Scope } from '../resolve/scope.ts';
import { identityOf, readFrom, type Value } from '../resolve/value.ts';
import { childrenOf, findNodes } from '../walk.ts';
import type { Compiler, ExpressionUse } from './compiler.ts';

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
export function withoutWindowSubquery(scope: Scope): Scope {
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
