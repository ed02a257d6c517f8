import type { Expression, Field, Window } from '../ast.ts';
import type { Node } from '../ast_node.ts';
import { findNodes } from '../walk.ts';
import type { Value } from './value.ts';

/** Names that WITH gives to expressions. */
interface WithExpressions {
  readonly expressions: ReadonlyMap<string, Expression>;
  readonly outer: WithExpressions | null;
}

/** What is looked at of a scope, of which all members are compared: a scope holds the statement, which holds these values. */
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
 * What names of SELECT stand for, compiled once for each place where they mean the same: what reads a name that reads
 * another one would else be compiled as often as there are ways to get to it.
 */
export class AliasCache {
  readonly #known = new Map<Expression, CachedValue[]>();
  readonly #reached = new Map<Expression, ReadonlySet<Expression> | null>();

  /** The value of a named expression in a scope in which it is being expanded; `compile` makes it. */
  getOrCompile(expression: Expression, scope: AliasScope, compile: () => Value): Value {
    if (!this.#isAlike(expression, scope)) return compile();
    const cached = this.#known.get(expression) ?? [];
    const found = cached.find((one) => isSameScope(one.scope, scope));
    if (found !== undefined) return found.value;
    const value = compile();
    this.#known.set(expression, [...cached, { scope, value }]);
    return value;
  }

  /** Whether it means the same whatever is being expanded around it. */
  #isAlike(expression: Expression, scope: AliasScope): boolean {
    let reachable = this.#reached.get(expression);
    if (reachable === undefined) {
      reachable = reachableAliases(expression, scope);
      this.#reached.set(expression, reachable);
    }
    return reachable !== null && !scope.expandingAliases.some((one) => reachable.has(one));
  }
}

/** The named expressions that one reads, directly or by another one; null where names of WITH are among them. */
function reachableAliases(expression: Expression, scope: AliasScope): ReadonlySet<Expression> | null {
  const reachable = new Set<Expression>();
  // A named window is read wherever a call names one: that each expression may name any costs no more than a look.
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

/** Whether all names mean the same in both scopes, whatever is being expanded. */
const isSameScope = (one: AliasScope, other: AliasScope): boolean =>
  one.windowSubquery === other.windowSubquery &&
  (Object.keys(other) as (keyof AliasScope)[]).every(
    (name) => name === 'expandingAliases' || one[name] === other[name],
  );
