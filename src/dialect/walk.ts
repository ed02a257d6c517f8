import type { Node } from './ast_node.ts';

/** The nodes right below one, in the order in which they are written. */
export function childrenOf(node: Node): readonly Node[] {
  const children: Node[] = [];
  for (const field of Object.values(node)) {
    if (Array.isArray(field)) for (const item of field) if (isNode(item)) children.push(item);
    if (isNode(field)) children.push(field);
  }
  return children;
}

/** What a walk does at each node. */
export interface Visitor {
  /** Before the nodes below it; `false` leaves them out. */
  readonly enter?: (node: Node, parents: readonly Node[]) => boolean | undefined;
  /** After the nodes below it. */
  readonly leave?: (node: Node, parents: readonly Node[]) => void;
}

/** Visits every node from the top; `parents` are those above it, the root first. */
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

/** Every node of a tree that a test holds for. */
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
 * Makes a tree anew from the leaves up: `change` gets each node with its new children and gives what stands in its
 * place, which has to be of a kind that may stand there. Parts that do not change stay the same objects.
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
