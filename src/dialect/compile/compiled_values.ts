import type { Expression } from '../ast.ts';
import type { Scope } from '../resolve/scope.ts';
import type { Value } from '../resolve/value.ts';
import type { ExpressionUse } from './compiler.ts';

const values = new WeakMap<Scope, Map<Expression, Partial<Record<ExpressionUse, Value>>>>();

/** The value of an expression that was compiled before in the same scope. */
export const knownValue = (node: Expression, scope: Scope, use: ExpressionUse): Value | undefined =>
  values.get(scope)?.get(node)?.[use];

/**
 * Remembers a compiled expression. Around a window function, each level is first compiled for the inner query; without
 * this, every level would compile all levels below it again.
 */
export function rememberValue(node: Expression, scope: Scope, use: ExpressionUse, value: Value): void {
  const known = values.get(scope) ?? new Map<Expression, Partial<Record<ExpressionUse, Value>>>();
  values.set(scope, known);
  known.set(node, { ...known.get(node), [use]: value });
}
