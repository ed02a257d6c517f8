import type { Node } from './ast_node.ts';

/** The direct children of a node, in source order. */
export function childrenOf(node: Node): readonly Node[] {
  const children: Node[] = [];
  for (const field of Object.values(node)) {
    if (Array.isArray(field)) for (const item of field) if (isNode(item)) children.push(item);
    if (isNode(field)) children.push(field);
  }
  return children;
}

/** Callbacks of a walk. */
export interface Visitor {
  /** Called before the children; return `false` to skip them. */
  readonly enter?: (node: Node, parents: readonly Node[]) => boolean | undefined;
  /** Called after the children. */
  readonly leave?: (node: Node, parents: readonly Node[]) => void;
}

/** Visits every node depth-first. `parents` are the ancestors, root first. */
export function walk(root: Node, visitor: Visitor): void {
  const parents: Node[] = [];
  const visit = (node: Node): void => {
    if (visitor.enter?.(node, parents) !== false) {
      parents.push(node);
      for (const child of childrenOf(node)) visit(child);
      parents.pop();
    }
    visitor.leave?.(node, parents);
  };
  visit(root);
}

/** All nodes of a tree that match a predicate. */
export function findNodes<Found extends Node>(
  root: Node,
  test: (node: Node) => node is Found,
): readonly Found[] {
  const found: Found[] = [];
  walk(root, {
    enter: (node) => {
      if (test(node)) found.push(node);
      return true;
    },
  });
  return found;
}

/**
 * Rebuilds a tree bottom-up. `change` receives each node with its new children and returns its replacement, whose
 * kind must be allowed there. Unchanged subtrees keep their identity.
 */
export function transform(root: Node, change: (node: Node) => Node): Node {
  return change(withChildren(root, (child) => transform(child, change)));
}

function withChildren(node: Node, replace: (child: Node) => Node): Node {
  const changed: Record<string, unknown> = {};
  let same = true;
  for (const [name, field] of Object.entries(node)) {
    const next: unknown = Array.isArray(field)
      ? replaceItems(field, replace)
      : isNode(field)
        ? replace(field)
        : field;
    changed[name] = next;
    if (next !== field) same = false;
  }
  return same ? node : (changed as unknown as Node);
}

function replaceItems(items: readonly unknown[], replace: (child: Node) => Node): readonly unknown[] {
  const next = items.map((item) => (isNode(item) ? replace(item) : item));
  return next.every((item, index) => item === items[index]) ? items : next;
}

const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && 'kind' in value && 'start' in value;
