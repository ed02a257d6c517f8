import type { Expression, Field, Window } from '../ast.ts';
import type { Node } from '../ast_node.ts';
import { findNodes } from '../walk.ts';
import type { Value } from './value.ts';

/** Aliases that WITH gives to expressions. */
interface WithExpressions {
  readonly expressions: ReadonlyMap<string, Expression>;
  readonly outer: WithExpressions | null;
}

/**
 * The fields of a scope that this cache reads by name; scopes are compared by all of their fields. It is declared apart
 * from Scope, because a scope refers to the statement, which refers to this cache.
 */
interface AliasScope {
  readonly aliases: ReadonlyMap<string, Expression>;
  readonly windows: ReadonlyMap<string, Window>;
  readonly ctes: WithExpressions | null;
  readonly expandingAliases: readonly Expression[];
  readonly windowSubquery?: object | undefined;
}

interface CachedValue {
  readonly scope: AliasScope;
  readonly value: Value;
}

/**
 * Caches compiled aliases of SELECT, once for each scope in which they mean the same. Without it, an alias that
 * reads other aliases would be compiled once for every path that leads to it.
 */
export class AliasCache {
  readonly #cached = new Map<Expression, CachedValue[]>();
  readonly #reachable = new Map<Expression, ReadonlySet<Expression> | null>();

  /** The value of an aliased expression in the scope where it is expanded; `compile` computes it on a miss. */
  getOrCompile(expression: Expression, scope: AliasScope, compile: () => Value): Value {
    if (!this.#isContextFree(expression, scope)) return compile();
    const cached = this.#cached.get(expression) ?? [];
    const found = cached.find((one) => isSameScope(one.scope, scope));
    if (found !== undefined) return found.value;
    const value = compile();
    this.#cached.set(expression, [...cached, { scope, value }]);
    return value;
  }

  /** Whether the expression means the same regardless of which aliases are being expanded. */
  #isContextFree(expression: Expression, scope: AliasScope): boolean {
    let reachable = this.#reachable.get(expression);
    if (reachable === undefined) {
      reachable = reachableAliases(expression, scope);
      this.#reachable.set(expression, reachable);
    }
    return reachable !== null && !scope.expandingAliases.some((one) => reachable.has(one));
  }
}

/** The aliased expressions that an expression reads, directly or indirectly; null if it reads an alias of WITH. */
function reachableAliases(expression: Expression, scope: AliasScope): ReadonlySet<Expression> | null {
  const reachable = new Set<Expression>();
  // Any call may name a window, so all named windows count as read. This costs only an extra visit.
  const pending: Node[] = [expression, ...scope.windows.values()];
  for (let node = pending.pop(); node !== undefined; node = pending.pop())
    for (const { path } of findNodes(node, isField)) {
      const name = path[0]?.text ?? '';
      if (isWithName(name, scope.ctes)) return null;
      const alias = scope.aliases.get(name);
      if (alias === undefined || reachable.has(alias)) continue;
      reachable.add(alias);
      pending.push(alias);
    }
  return reachable;
}

const isField = (node: Node): node is Field => node.kind === 'field';

function isWithName(name: string, ctes: WithExpressions | null): boolean {
  for (let one = ctes; one !== null; one = one.outer) if (one.expressions.has(name)) return true;
  return false;
}

/** Whether all names mean the same in both scopes, ignoring which aliases are being expanded. */
const isSameScope = (one: AliasScope, other: AliasScope): boolean =>
  one.windowSubquery === other.windowSubquery &&
  (Object.keys(other) as (keyof AliasScope)[]).every(
    (name) => name === 'expandingAliases' || one[name] === other[name],
  );
