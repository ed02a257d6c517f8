import { hash } from 'node:crypto';
import type { Node } from '../ast_node.ts';

const identities = new WeakMap<Node, string>();

/**
 * Equal for trees that print the same text. It is a digest of the node's words and its children's identities, so
 * computing it for all queries of a text takes time linear in the text.
 */
export function syntaxIdentity(node: Node): string {
  const known = identities.get(node);
  if (known !== undefined) return known;
  const identity = hash('sha256', JSON.stringify(Object.entries(node).map(partOf)), 'base64');
  identities.set(node, identity);
  return identity;
}

/** A property of a node without the positions in the text. */
const partOf = ([name, value]: [string, unknown]): unknown =>
  name === 'start' || name === 'end' ? null : [name, summaryOf(value)];

function summaryOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(summaryOf);
  return typeof value === 'object' && value !== null ? syntaxIdentity(value as Node) : (value ?? null);
}
