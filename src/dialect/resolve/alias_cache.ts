import type { Expression } from '../ast.ts';
import { AliasGraph, type AliasNames } from './alias_graph.ts';
import type { Value } from './value.ts';

/**
 * The fields of a scope that this cache reads by name; scopes are compared by all of their fields. It is declared apart
 * from Scope, because a scope refers to the statement, which refers to this cache.
 */
interface AliasScope extends AliasNames {
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
  readonly #graphs = new WeakMap<AliasScope['aliases'], AliasGraph>();

  /** The value of an aliased expression in the scope where it is expanded; `compile` computes it on a miss. */
  getOrCompile(expression: Expression, scope: AliasScope, compile: () => Value): Value {
    if (!this.#graphOf(scope).isContextFree(expression)) return compile();
    const cached = this.#cached.get(expression) ?? [];
    const found = cached.find((one) => isSameScope(one.scope, scope));
    if (found !== undefined) return found.value;
    const value = compile();
    this.#cached.set(expression, [...cached, { scope, value }]);
    return value;
  }

  #graphOf(scope: AliasScope): AliasGraph {
    const known = this.#graphs.get(scope.aliases);
    if (known?.names.windows === scope.windows && known.names.ctes === scope.ctes) return known;
    const graph = new AliasGraph(scope);
    this.#graphs.set(scope.aliases, graph);
    return graph;
  }
}

/** Whether all names mean the same in both scopes, ignoring which aliases are being expanded. */
const isSameScope = (one: AliasScope, other: AliasScope): boolean =>
  one.windowSubquery === other.windowSubquery &&
  (Object.keys(other) as (keyof AliasScope)[]).every(
    (name) => name === 'expandingAliases' || one[name] === other[name],
  );
