import { type CharacterSet, characterSet, intersects } from './character_set.ts';
import { partsOf, type RegularExpression } from './syntax_tree.ts';

/** Whether the node can match the empty string, at some position. */
export function canBeEmpty(node: RegularExpression): boolean {
  switch (node.kind) {
    case 'set':
      return false;
    case 'assertion':
    case 'negative_lookahead':
      return true;
    case 'concatenation':
      return node.items.every(canBeEmpty);
    case 'alternation':
      return node.branches.some(canBeEmpty);
    case 'repetition':
      return node.min === 0 || canBeEmpty(node.body);
    case 'group':
      return canBeEmpty(node.body);
  }
}

/** Whether the node matches the empty string at each position. */
export function isAlwaysEmptyMatch(node: RegularExpression): boolean {
  switch (node.kind) {
    case 'set':
    case 'assertion':
    case 'negative_lookahead':
      return false;
    case 'concatenation':
      return node.items.every(isAlwaysEmptyMatch);
    case 'alternation':
      return node.branches.some(isAlwaysEmptyMatch);
    case 'repetition':
      return node.min === 0 || isAlwaysEmptyMatch(node.body);
    case 'group':
      return isAlwaysEmptyMatch(node.body);
  }
}

/** The characters that a match of the node can start with. */
export function firstCharacters(node: RegularExpression): CharacterSet {
  switch (node.kind) {
    case 'set':
      return node.set;
    case 'assertion':
    case 'negative_lookahead':
      return [];
    case 'concatenation': {
      const end = node.items.findIndex((item) => !canBeEmpty(item));
      const starting = end < 0 ? node.items : node.items.slice(0, end + 1);
      return characterSet(starting.flatMap(firstCharacters));
    }
    case 'alternation':
      return characterSet(node.branches.flatMap(firstCharacters));
    case 'repetition':
    case 'group':
      return firstCharacters(node.body);
  }
}

/** Whether the next character decides which of two nodes can match. */
export const areDistinct = (left: RegularExpression, right: RegularExpression): boolean =>
  !canBeEmpty(left) && !canBeEmpty(right) && !intersects(firstCharacters(left), firstCharacters(right));

/** The number of characters of each match; null if it varies. */
export function fixedLength(node: RegularExpression): number | null {
  switch (node.kind) {
    case 'set':
      return 1;
    case 'assertion':
    case 'negative_lookahead':
      return 0;
    case 'concatenation':
      return node.items.reduce<number | null>((sum, item) => {
        const length = fixedLength(item);
        return sum === null || length === null ? null : sum + length;
      }, 0);
    case 'alternation': {
      const [length = null, ...others] = node.branches.map(fixedLength);
      return others.every((other) => other === length) ? length : null;
    }
    case 'repetition': {
      const length = fixedLength(node.body);
      return length === null || node.min !== node.max ? null : length * node.min;
    }
    case 'group':
      return fixedLength(node.body);
  }
}

/** Whether the node always prefers longer matches, in this order: both engines then try the same ones first. */
export function prefersLonger(node: RegularExpression): boolean {
  switch (node.kind) {
    case 'set':
    case 'assertion':
      return true;
    case 'negative_lookahead':
      return false;
    case 'concatenation':
      return (
        node.items.filter((item) => fixedLength(item) === null).length <= 1 && node.items.every(prefersLonger)
      );
    case 'alternation':
      return (
        node.branches.every(prefersLonger) &&
        (areDescending(node.branches.map(fixedLength)) || areAllDistinct(node.branches))
      );
    case 'repetition':
      if (!prefersLonger(node.body)) return false;
      if (node.min === node.max) return fixedLength(node.body) !== null;
      return node.isGreedy && (node.max === 1 || (fixedLength(node.body) ?? 0) > 0);
    case 'group':
      return prefersLonger(node.body);
  }
}

const areDescending = (lengths: readonly (number | null)[]): boolean =>
  lengths.every((length, index) => length !== null && length <= (lengths[index - 1] ?? length));

const areAllDistinct = (branches: readonly RegularExpression[]): boolean =>
  branches.every((branch, index) => branches.slice(index + 1).every((later) => areDistinct(branch, later)));

/** Whether a group in a repetition may be skipped by the last one: PostgreSQL then forgets what it captured. */
export function mayForgetGroup(node: RegularExpression, isOptional = false, isRepeated = false): boolean {
  switch (node.kind) {
    case 'group':
      return (isOptional && isRepeated) || mayForgetGroup(node.body, isOptional, isRepeated);
    case 'alternation':
      return node.branches.some((branch) => mayForgetGroup(branch, true, isRepeated));
    case 'repetition':
      // What is optional outside a repetition is not skipped by its last one.
      return mayForgetGroup(
        node.body,
        (isOptional || node.min === 0) && (isRepeated || node.max <= 1),
        isRepeated || node.max > 1,
      );
    default:
      return partsOf(node).some((part) => mayForgetGroup(part, isOptional, isRepeated));
  }
}
