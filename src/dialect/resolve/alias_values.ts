import type { Expression, Field, Window } from '../ast.ts';
import type { Node } from '../ast_node.ts';
import { findNodes } from '../walk.ts';
import type { Value } from './value.ts';

/** Names that WITH gives to expressions. */
interface NamedByWith {
  readonly expressions: ReadonlyMap<string, Expression>;
  readonly outer: NamedByWith | null;
}

/** What is looked at of a scope, of which all members are compared: a scope holds the statement, which holds these values. */
interface Place {
  readonly aliases: ReadonlyMap<string, Expression>;
  readonly windows: ReadonlyMap<string, Window>;
  readonly ctes: NamedByWith | null;
  readonly expanding: readonly Expression[];
  readonly staging?: object | undefined;
}

interface Known {
  readonly scope: Place;
  readonly value: Value;
}

/**
 * What names of SELECT stand for, compiled once for each place where they mean the same: what reads a name that reads
 * another one would else be compiled as often as there are ways to get to it.
 */
export class AliasValues {
  readonly #known = new Map<Expression, Known[]>();
  readonly #reached = new Map<Expression, ReadonlySet<Expression> | null>();

  /** The value of a named expression in a scope in which it is being expanded; `compile` makes it. */
  valueOf(expression: Expression, scope: Place, compile: () => Value): Value {
    if (!this.#isAlike(expression, scope)) return compile();
    const known = this.#known.get(expression) ?? [];
    const found = known.find((one) => isSamePlace(one.scope, scope));
    if (found !== undefined) return found.value;
    const value = compile();
    this.#known.set(expression, [...known, { scope, value }]);
    return value;
  }

  /** Whether it means the same whatever is being expanded around it. */
  #isAlike(expression: Expression, scope: Place): boolean {
    let reached = this.#reached.get(expression);
    if (reached === undefined) {
      reached = reachedFrom(expression, scope);
      this.#reached.set(expression, reached);
    }
    return reached !== null && !scope.expanding.some((one) => reached.has(one));
  }
}

/** The named expressions that one reads, directly or by another one; null where names of WITH are among them. */
function reachedFrom(expression: Expression, scope: Place): ReadonlySet<Expression> | null {
  const reached = new Set<Expression>();
  // A named window is read wherever a call names one: that each expression may name any costs no more than a look.
  const waiting: Node[] = [expression, ...scope.windows.values()];
  for (let node = waiting.pop(); node !== undefined; node = waiting.pop())
    for (const { path } of findNodes(node, isField)) {
      const name = path[0]?.text ?? '';
      if (isNamedByWith(name, scope.ctes)) return null;
      const alias = scope.aliases.get(name);
      if (alias === undefined || reached.has(alias)) continue;
      reached.add(alias);
      waiting.push(alias);
    }
  return reached;
}

const isField = (node: Node): node is Field => node.kind === 'field';

function isNamedByWith(name: string, ctes: NamedByWith | null): boolean {
  for (let one = ctes; one !== null; one = one.outer) if (one.expressions.has(name)) return true;
  return false;
}

/** Whether all names mean the same in both scopes, whatever is being expanded. */
const isSamePlace = (one: Place, other: Place): boolean =>
  one.staging === other.staging &&
  (Object.keys(other) as (keyof Place)[]).every((name) => name === 'expanding' || one[name] === other[name]);
