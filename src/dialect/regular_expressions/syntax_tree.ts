import { characterSet, type CharacterSet } from './character_set.ts';

/** A position in a text. `line_start` and `line_end` are those of the flag `m`. */
export type Assertion =
  | 'text_start'
  | 'text_end'
  | 'line_start'
  | 'line_end'
  | 'word_boundary'
  | 'no_word_boundary';

/** A regular expression, independent of the syntax of RE2 and PostgreSQL. */
export type RegularExpression =
  | { readonly kind: 'set'; readonly set: CharacterSet }
  | { readonly kind: 'assertion'; readonly assertion: Assertion }
  | { readonly kind: 'concatenation'; readonly items: readonly RegularExpression[] }
  | { readonly kind: 'alternation'; readonly branches: readonly RegularExpression[] }
  | Repetition
  /** A capturing group. */
  | { readonly kind: 'group'; readonly body: RegularExpression };

export interface Repetition {
  readonly kind: 'repetition';
  readonly body: RegularExpression;
  readonly min: number;
  /** Infinity if there is no bound. */
  readonly max: number;
  readonly isGreedy: boolean;
}

/** A sequence. Nested ones become one. */
export function concatenation(items: readonly RegularExpression[]): RegularExpression {
  const flat = items.flatMap((item) => (item.kind === 'concatenation' ? item.items : [item]));
  const [only, another] = flat;
  return only !== undefined && another === undefined ? only : { kind: 'concatenation', items: flat };
}

/** A choice. Adjacent branches of one character become one set. */
export function alternation(branches: readonly RegularExpression[]): RegularExpression {
  const merged: RegularExpression[] = [];
  for (const branch of branches) {
    const previous = merged.at(-1);
    if (branch.kind === 'set' && previous?.kind === 'set')
      merged[merged.length - 1] = { kind: 'set', set: characterSet([...previous.set, ...branch.set]) };
    else merged.push(branch);
  }
  const [only, another] = merged;
  return only !== undefined && another === undefined ? only : { kind: 'alternation', branches: merged };
}

/** Matches the empty string. */
export const emptyExpression: RegularExpression = { kind: 'concatenation', items: [] };

/** The parts of a node. */
export function partsOf(node: RegularExpression): readonly RegularExpression[] {
  switch (node.kind) {
    case 'set':
    case 'assertion':
      return [];
    case 'concatenation':
      return node.items;
    case 'alternation':
      return node.branches;
    case 'repetition':
    case 'group':
      return [node.body];
  }
}

/** Whether there is a capturing group in the node. */
export const hasGroup = (node: RegularExpression): boolean =>
  node.kind === 'group' || partsOf(node).some(hasGroup);

/** The same without capturing. */
export function withoutGroups(node: RegularExpression): RegularExpression {
  switch (node.kind) {
    case 'group':
      return withoutGroups(node.body);
    case 'concatenation':
      return concatenation(node.items.map(withoutGroups));
    case 'alternation':
      return { ...node, branches: node.branches.map(withoutGroups) };
    case 'repetition':
      return { ...node, body: withoutGroups(node.body) };
    default:
      return node;
  }
}
