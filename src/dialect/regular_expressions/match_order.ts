import {
  type CharacterSet,
  characterSet,
  everyCharacter,
  intersects,
  maxCodePoint,
} from './character_set.ts';
import {
  concatenation,
  emptyExpression,
  hasGroup,
  partsOf,
  PatternError,
  type RegularExpression,
  tooComplex,
} from './parse.ts';

/** How PostgreSQL finds the match that RE2 finds. `mixed`: the longest one, of which each part keeps its greediness. */
export type MatchLength = 'longest' | 'shortest' | 'mixed';

/**
 * Decides how PostgreSQL, which takes the longest or the shortest match, finds the match and the groups that RE2 finds,
 * which takes the first one by preference. They are the same if RE2 tries the lengths of a match in order. Conservative.
 * @throws PatternError if RE2's preference has no such order
 */
export function matchLengthOf(tree: RegularExpression): MatchLength {
  if (mayForgetGroup(tree))
    throw new PatternError(
      'This regular expression repeats a group that its last repetition may skip, which is not supported.',
      'Use (?:…) for the group.',
    );
  const reader = new OrderReader();
  const order = reader.orderOf(tree, emptyExpression);
  if (order === 'shortest') return order;
  if (order !== 'mixed') return 'longest';
  if (isMatchedToEnd(tree)) {
    if (!hasGroup(tree)) return 'longest';
    if (reader.areGroupsOrdered(tree)) return 'mixed';
  }
  throw new PatternError(
    'PostgreSQL cannot follow the order in which this regular expression prefers its matches.',
    'Use [^/]* instead of .*?, write longer alternatives first, or end it with $.',
  );
}

/** Repetitions and branches beyond this number are too many to examine. */
const maxChoices = 300;

/** Characters of a start that are compared. */
const maxStart = 16;

/**
 * The order in which RE2 tries the lengths of a match. `one`: at each position only one length can be part of a whole match,
 * often because the next character decides.
 */
type Order = 'one' | 'longest' | 'shortest' | 'mixed';

class OrderReader {
  #choices = 0;

  /** @param next what has to match after the node */
  orderOf(node: RegularExpression, next: RegularExpression): Order {
    switch (node.kind) {
      case 'set':
      case 'assertion':
        return 'one';
      case 'group':
        return this.orderOf(node.body, next);
      case 'concatenation':
        return this.#orderOfItems(node.items, next);
      case 'alternation':
        return this.#orderOfBranches(node.branches, next);
      case 'repetition':
        return this.#orderOfRepetition(node, next);
    }
  }

  /** Whether PostgreSQL, which takes the items of a match of known length one by one, gives each group its part. */
  areGroupsOrdered(tree: RegularExpression): boolean {
    const items = tree.kind === 'concatenation' ? tree.items : [tree];
    // PostgreSQL treats what is between two groups as one part.
    const starts = items.flatMap((item, index) => {
      const previous = items[index - 1];
      return previous === undefined || hasGroup(item) || hasGroup(previous) ? [index] : [];
    });
    return starts.every((start, index) => {
      const part = concatenation(items.slice(start, starts[index + 1]));
      const order = this.orderOf(part, concatenation(items.slice(starts[index + 1] ?? items.length)));
      // PostgreSQL takes the longest branch, whatever the repetitions beside it.
      return order !== 'mixed' && (order !== 'shortest' || !hasAlternation(part));
    });
  }

  #charge(choices: number): void {
    this.#choices += choices;
    if (this.#choices > maxChoices) throw tooComplex();
  }

  /** Only one item may have several lengths, unless more of an item excludes that the following ones match. */
  #orderOfItems(items: readonly RegularExpression[], next: RegularExpression): Order {
    let order: Order = 'one';
    // Whether what follows, if it starts later, never ends earlier.
    let isMonotonic = true;
    for (const [index, item] of [...items.entries()].toReversed()) {
      if (fixedLength(item) !== null) continue;
      const following = concatenation(items.slice(index + 1));
      const own = this.orderOf(item, concatenation([following, next]));
      if (own === 'one') isMonotonic &&= isRepeatedSet(item);
      else if (order === 'one' && isMonotonic) order = own;
      else if (own === 'longest' && this.#staysLongest(order, item, following, next)) order = 'longest';
      else return 'mixed';
    }
    return order;
  }

  /**
   * Whether a longer part for an item never leads to a shorter match, if both are tried from the longest on. That is so if
   * what follows can take nothing of the rest of the item, none of its repetitions, or all that it leaves.
   */
  #staysLongest(
    order: Order,
    item: RegularExpression,
    following: RegularExpression,
    next: RegularExpression,
  ): boolean {
    if (order !== 'one' && order !== 'longest') return false;
    if (isSeparate(item, following)) return true;
    const rest = concatenation([following, next]);
    return order === 'longest' && (this.#isBarrier(item, rest) || isGreedySet(rest));
  }

  /** Whether an item repeats something whose every match has a character that the rest cannot match anywhere. */
  #isBarrier(item: RegularExpression, rest: RegularExpression): boolean {
    if (item.kind === 'group') return this.#isBarrier(item.body, rest);
    if (item.kind !== 'repetition') return false;
    const { body } = item;
    const again: RegularExpression = { ...item, min: 0, max: Infinity };
    return this.orderOf(body, concatenation([again, rest])) === 'one' && isBlocked(rest, body);
  }

  #orderOfBranches(branches: readonly RegularExpression[], next: RegularExpression): Order {
    this.#charge(branches.length);
    const lengths = branches.map(fixedLength);
    const [first = null] = lengths;
    if (first !== null && lengths.every((length) => length === first)) return 'one';
    const orders = new Set(branches.map((branch) => this.orderOf(branch, next)));
    if (areAllDistinct(branches.map((branch) => concatenation([branch, next])))) {
      orders.delete('one');
      const [order = 'one', another] = orders;
      return another === undefined ? order : 'mixed';
    }
    if (isDescending(lengths)) return 'longest';
    return isDescending(lengths.toReversed()) ? 'shortest' : 'mixed';
  }

  #orderOfRepetition(
    node: Extract<RegularExpression, { readonly kind: 'repetition' }>,
    next: RegularExpression,
  ): Order {
    this.#charge(1);
    const { body, min, max, isGreedy } = node;
    if (max === 0) return 'one';
    if (min === max && fixedLength(body) !== null) return 'one';
    const isSingle = max === 1;
    const again = isSingle ? emptyExpression : ({ ...node, min: 0, max: Infinity } as const);
    const order = this.orderOf(body, concatenation([again, next]));
    if (isSingle && min === 1) return order;
    if (canBeEmpty(body)) return 'mixed';
    // The next character decides between another repetition and what follows.
    if (order === 'one' && (min === max || areDistinct(concatenation([body, again, next]), next)))
      return 'one';
    if (isSingle && areDistinct(concatenation([body, next]), next)) return order;
    const preferred = isGreedy ? 'longest' : 'shortest';
    if (order === 'one' || (isSingle && order === preferred)) return preferred;
    return order === 'longest' && isGreedy && isSeparate(body, body) ? 'longest' : 'mixed';
  }
}

/** Whether each match ends at the end of the text. */
function isMatchedToEnd(node: RegularExpression): boolean {
  switch (node.kind) {
    case 'assertion':
      return node.assertion === 'text_end';
    case 'concatenation': {
      const last = node.items.at(-1);
      return last !== undefined && isMatchedToEnd(last);
    }
    case 'group':
      return isMatchedToEnd(node.body);
    case 'repetition':
      return node.isGreedy && node.max === Infinity && isEveryCharacter(node.body);
    default:
      return false;
  }
}

const isEveryCharacter = (node: RegularExpression): boolean =>
  node.kind === 'set' && node.set[0]?.[0] === 0 && node.set[0][1] === maxCodePoint;

const isRepeatedSet = (node: RegularExpression): boolean =>
  node.kind === 'group' ? isRepeatedSet(node.body) : node.kind === 'repetition' && isSet(node.body);

const isSet = (node: RegularExpression): boolean =>
  node.kind === 'set' || (node.kind === 'group' && isSet(node.body));

/** Whether it is a greedy repetition of a set without a limit, which takes all that is left for it. */
const isGreedySet = (node: RegularExpression): boolean =>
  node.kind === 'group'
    ? isGreedySet(node.body)
    : node.kind === 'repetition' && node.isGreedy && node.max === Infinity && isSet(node.body);

/** Whether each match of `barrier` has a character that no part of a node matches. */
function isBlocked(node: RegularExpression, barrier: RegularExpression): boolean {
  switch (barrier.kind) {
    case 'set':
      return !intersects(barrier.set, charactersOf(node));
    case 'assertion':
      return false;
    case 'concatenation':
      return barrier.items.some((item) => isBlocked(node, item));
    case 'alternation':
      return barrier.branches.every((branch) => isBlocked(node, branch));
    case 'repetition':
      return barrier.min > 0 && isBlocked(node, barrier.body);
    case 'group':
      return isBlocked(node, barrier.body);
  }
}

/** All characters that a match of the node can have. */
const charactersOf = (node: RegularExpression): CharacterSet =>
  node.kind === 'set' ? node.set : characterSet(partsOf(node).flatMap(charactersOf));

const hasAlternation = (node: RegularExpression): boolean =>
  node.kind === 'alternation' || partsOf(node).some(hasAlternation);

/** Whether a node cannot match more where what follows can match. */
const isSeparate = (node: RegularExpression, following: RegularExpression): boolean =>
  !intersects(continuations(node), firstCharacters(following));

/** Characters with which a match of the node can become a longer one. */
function continuations(node: RegularExpression): CharacterSet {
  switch (node.kind) {
    case 'set':
    case 'assertion':
      return [];
    case 'group':
      return continuations(node.body);
    case 'repetition':
      return characterSet([...firstCharacters(node.body), ...continuations(node.body)]);
    case 'alternation':
      return fixedLength(node) !== null
        ? []
        : areAllDistinct(node.branches)
          ? characterSet(node.branches.flatMap(continuations))
          : everyCharacter;
    case 'concatenation': {
      let [found, following]: [CharacterSet, RegularExpression] = [[], emptyExpression];
      for (const item of node.items.toReversed()) {
        if (fixedLength(item) === null && !isSeparate(item, following)) return everyCharacter;
        if (canBeEmpty(following)) found = characterSet([...found, ...continuations(item)]);
        following = concatenation([item, following]);
      }
      return found;
    }
  }
}

/** Whether the node can match the empty string, at some position. */
function canBeEmpty(node: RegularExpression): boolean {
  switch (node.kind) {
    case 'set':
      return false;
    case 'assertion':
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

/** The characters that a match of the node can start with. */
function firstCharacters(node: RegularExpression): CharacterSet {
  switch (node.kind) {
    case 'set':
      return node.set;
    case 'concatenation': {
      const end = node.items.findIndex((item) => !canBeEmpty(item));
      const starting = end < 0 ? node.items : node.items.slice(0, end + 1);
      return characterSet(starting.flatMap(firstCharacters));
    }
    default:
      return characterSet(partsOf(node).flatMap(firstCharacters));
  }
}

/** The number of characters of each match; null if it varies. */
function fixedLength(node: RegularExpression): number | null {
  switch (node.kind) {
    case 'set':
      return 1;
    case 'assertion':
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

/** The sets of the first characters, one by one, of which each match has at least so many. */
function startOf(node: RegularExpression): readonly CharacterSet[] {
  switch (node.kind) {
    case 'set':
      return [node.set];
    case 'assertion':
      return [];
    case 'group':
      return startOf(node.body);
    case 'alternation': {
      const [first = [], ...others] = node.branches.map(startOf);
      const length = Math.min(first.length, ...others.map((other) => other.length));
      return first
        .slice(0, length)
        .map((set, index) => characterSet([...set, ...others.flatMap((other) => other[index] ?? [])]));
    }
    case 'repetition':
      return node.min === 0
        ? []
        : startOf(concatenation(Array<RegularExpression>(Math.min(node.min, maxStart)).fill(node.body)));
    case 'concatenation': {
      const found: CharacterSet[] = [];
      for (const [index, item] of node.items.entries()) {
        const start = startOf(item);
        found.push(...start);
        if (found.length >= maxStart) break;
        if (fixedLength(item) === start.length) continue;
        const rest = concatenation(node.items.slice(index));
        if (start.length === 0 && !canBeEmpty(rest)) found.push(firstCharacters(rest));
        break;
      }
      return found.slice(0, maxStart);
    }
  }
}

/** Whether no text can start with matches of both. */
const areDistinct = (left: RegularExpression, right: RegularExpression): boolean =>
  haveDisjointSets(startOf(left), startOf(right));

const haveDisjointSets = (left: readonly CharacterSet[], right: readonly CharacterSet[]): boolean =>
  left.some((set, index) => {
    const other = right[index];
    return other !== undefined && !intersects(set, other);
  });

function areAllDistinct(branches: readonly RegularExpression[]): boolean {
  const starts = branches.map(startOf);
  return starts.every((start, index) =>
    starts.slice(index + 1).every((later) => haveDisjointSets(start, later)),
  );
}

const isDescending = (lengths: readonly (number | null)[]): boolean =>
  lengths.every((length, index) => length !== null && length <= (lengths[index - 1] ?? length));

/** Whether a group in a repetition may be skipped by the last one: PostgreSQL then forgets what it captured. */
function mayForgetGroup(node: RegularExpression, isOptional = false, isRepeated = false): boolean {
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
