import type { Expression, Field, Window } from '../ast.ts';
import type { Node } from '../ast_node.ts';
import { findNodes } from '../walk.ts';

/** Aliases that WITH gives to expressions. */
export interface WithExpressions {
  readonly expressions: ReadonlyMap<string, Expression>;
  readonly outer: WithExpressions | null;
}

/** The names that expressions of a SELECT can read besides columns. */
export interface AliasNames {
  readonly aliases: ReadonlyMap<string, Expression>;
  readonly windows: ReadonlyMap<string, Window>;
  readonly ctes: WithExpressions | null;
}

/** All named windows together. Each call may name one, so every expression counts as reading them. */
const windowsNode = Symbol('windows');
type GraphNode = Expression | typeof windowsNode;

/** Which aliases the expressions of a SELECT read. Building it takes time linear in their text. */
export class AliasGraph {
  readonly names: AliasNames;
  readonly #reads = new Map<GraphNode, ReadonlySet<GraphNode>>();
  readonly #readsWith = new Set<GraphNode>();
  readonly #cyclic: ReadonlySet<GraphNode>;

  constructor(names: AliasNames) {
    this.names = names;
    this.#add(windowsNode, [...names.windows.values()]);
    for (const expression of new Set(names.aliases.values())) this.#add(expression, [expression]);
    const readers = reversed(this.#reads);
    const pending = [...this.#readsWith];
    for (let node = pending.pop(); node !== undefined; node = pending.pop())
      for (const reader of readers.get(node) ?? [])
        if (!this.#readsWith.has(reader)) {
          this.#readsWith.add(reader);
          pending.push(reader);
        }
    this.#cyclic = withoutEnds(withoutEnds(new Set(this.#reads.keys()), readers), this.#reads);
  }

  /**
   * Whether an expression means the same regardless of which aliases are being expanded: it reads neither itself nor an
   * alias of WITH, directly or indirectly.
   */
  isContextFree(expression: Expression): boolean {
    if (!this.#reads.has(expression)) this.#add(expression, [expression]);
    const reads = [...(this.#reads.get(expression) ?? [])];
    return (
      !this.#cyclic.has(expression) &&
      !this.#readsWith.has(expression) &&
      !reads.some((read) => this.#readsWith.has(read))
    );
  }

  #add(node: GraphNode, trees: readonly Node[]): void {
    const reads = new Set<GraphNode>(node === windowsNode ? [] : [windowsNode]);
    for (const { path } of trees.flatMap((tree) => findNodes(tree, isField))) {
      const name = path[0]?.text ?? '';
      if (isWithName(name, this.names.ctes)) this.#readsWith.add(node);
      const alias = this.names.aliases.get(name);
      if (alias !== undefined) reads.add(alias);
    }
    this.#reads.set(node, reads);
  }
}

const isField = (node: Node): node is Field => node.kind === 'field';

function isWithName(name: string, ctes: WithExpressions | null): boolean {
  for (let one = ctes; one !== null; one = one.outer) if (one.expressions.has(name)) return true;
  return false;
}

type Edges = ReadonlyMap<GraphNode, ReadonlySet<GraphNode>>;

function reversed(edges: Edges): Edges {
  const found = new Map<GraphNode, Set<GraphNode>>();
  for (const [from, targets] of edges)
    for (const to of targets) {
      const sources = found.get(to) ?? new Set();
      sources.add(from);
      found.set(to, sources);
    }
  return found;
}

/**
 * Removes nodes that no remaining node leads to, again and again. Applied in both directions, the nodes of cycles remain,
 * and those between two cycles.
 * @param successors the edges in the direction of removal
 */
function withoutEnds(nodes: ReadonlySet<GraphNode>, successors: Edges): ReadonlySet<GraphNode> {
  const remaining = new Set(nodes);
  const incoming = new Map<GraphNode, number>();
  for (const node of nodes)
    for (const next of successors.get(node) ?? []) incoming.set(next, (incoming.get(next) ?? 0) + 1);
  const pending = [...nodes].filter((node) => !incoming.has(node));
  for (let node = pending.pop(); node !== undefined; node = pending.pop()) {
    remaining.delete(node);
    for (const next of successors.get(node) ?? []) {
      const count = (incoming.get(next) ?? 0) - 1;
      incoming.set(next, count);
      if (count === 0 && remaining.has(next)) pending.push(next);
    }
  }
  return remaining;
}
