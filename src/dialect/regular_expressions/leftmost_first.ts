import { subtract } from './character_set.ts';
import { isFirstMatchLongest, type StepBudget } from './longest_match.ts';
import { PatternError, tooComplex } from './pattern_error.ts';
import { areDistinct, canBeEmpty, isAlwaysEmptyMatch, mayForgetGroup, prefersLonger } from './properties.ts';
import {
  concatenation,
  emptyExpression,
  hasGroup,
  type RegularExpression,
  type Repetition,
} from './syntax_tree.ts';

/**
 * Rewrites a regular expression so that PostgreSQL, which prefers the longest match, finds the match and the groups
 * that RE2 finds, which prefers the first branch and heeds greediness.
 *
 * A part whose first match is the longest one stays unchanged. Everywhere else lookaheads leave only the choice that
 * RE2 makes: a branch matches only if no earlier branch can, a greedy repetition ends only if it cannot go on.
 * @throws PatternError if lookaheads cannot express it
 */
export function preferFirst(tree: RegularExpression): RegularExpression {
  if (mayForgetGroup(tree))
    throw new PatternError(
      'This regular expression repeats a group that its last repetition may skip, which is not supported.',
      'Use (?:…) for the group.',
    );
  const items = tree.kind === 'concatenation' ? tree.items : [tree];
  const examination: StepBudget = { steps: maxExaminedSteps };
  const rewriter = new Rewriter();
  const rewritten: RegularExpression[] = [];
  for (const [index, item] of items.entries()) {
    if (!hasChoices(item)) {
      rewritten.push(item);
      continue;
    }
    const rest = concatenation(items.slice(index));
    rewriter.charge(items.length - index);
    if (hasSameGroups(rest) && isFirstMatchLongest(rest, examination))
      return concatenation([...rewritten, rest]);
    rewritten.push(rewriter.rewrite(item, concatenation(items.slice(index + 1))));
  }
  return concatenation(rewritten);
}

/** The examination of one expression then takes about ten milliseconds. */
const maxExaminedSteps = 20_000;

/** More nodes are too complex for PostgreSQL, too. */
const maxRewrittenNodes = 10_000;

/** Whether both engines capture the same in a match of the same length. Conservative. */
function hasSameGroups(node: RegularExpression): boolean {
  if (!hasGroup(node)) return true;
  switch (node.kind) {
    case 'group':
      return hasSameGroups(node.body);
    case 'alternation':
      return node.branches.every(hasSameGroups);
    case 'repetition':
      return prefersLonger(node) && hasSameGroups(node.body);
    case 'concatenation': {
      const lastGroup = node.items.findLastIndex(hasGroup);
      // PostgreSQL treats what is between two groups as one part.
      let between: RegularExpression[] = [];
      for (const item of node.items.slice(0, lastGroup + 1)) {
        if (!hasGroup(item)) {
          between.push(item);
          continue;
        }
        if (!prefersLonger(concatenation(between)) || !prefersLonger(item) || !hasSameGroups(item))
          return false;
        between = [];
      }
      return true;
    }
    default:
      return true;
  }
}

function not(body: RegularExpression): RegularExpression {
  const items = body.kind === 'concatenation' ? body.items : [body];
  const last = items.findLastIndex((item) => !isAlwaysEmptyMatch(item));
  return { kind: 'negative_lookahead', body: concatenation(items.slice(0, last + 1)) };
}

/** The node, where another cannot match. */
function unless(other: RegularExpression, node: RegularExpression): RegularExpression {
  const lookahead = not(other);
  const items = node.kind === 'concatenation' ? node.items : [node];
  const [first, ...rest] = items;
  return first?.kind === 'set' && lookahead.kind === 'negative_lookahead' && lookahead.body.kind === 'set'
    ? concatenation([{ kind: 'set', set: subtract(first.set, lookahead.body.set) }, ...rest])
    : concatenation([lookahead, ...items]);
}

/** Rewrites nodes one by one, up to a number. */
class Rewriter {
  #nodes = 0;

  /** Counts nodes. @throws PatternError if they are too many */
  charge(nodes: number): void {
    this.#nodes += nodes;
    if (this.#nodes > maxRewrittenNodes) throw tooComplex();
  }

  /**
   * Leaves only the choices that RE2 makes.
   * @param next what has to match after the node
   */
  rewrite(node: RegularExpression, next: RegularExpression): RegularExpression {
    this.charge(1);
    switch (node.kind) {
      case 'set':
      case 'assertion':
      case 'negative_lookahead':
        return node;
      case 'group':
        return { kind: 'group', body: this.rewrite(node.body, next) };
      case 'concatenation':
        this.charge(node.items.length ** 2);
        return concatenation(
          node.items.map((item, index) =>
            this.rewrite(item, concatenation([...node.items.slice(index + 1), next])),
          ),
        );
      case 'alternation':
        return this.#rewriteBranches(node.branches, next);
      case 'repetition':
        return this.#rewriteRepetition(node, next);
    }
  }

  /** A branch matches only if no earlier branch can. */
  #rewriteBranches(branches: readonly RegularExpression[], next: RegularExpression): RegularExpression {
    const rewritten = branches.map((branch, index) => {
      this.charge(index);
      const whole = concatenation([branch, next]);
      const earlier = branches
        .slice(0, index)
        .map((other) => concatenation([other, next]))
        .filter((other) => !areDistinct(other, whole));
      return earlier.reduceRight((node, other) => unless(other, node), this.rewrite(branch, next));
    });
    return { kind: 'alternation', branches: rewritten };
  }

  #rewriteRepetition(node: Repetition, next: RegularExpression): RegularExpression {
    const { body, min, max, isGreedy } = node;
    if (max === 1 && min === 0) return this.#rewriteOption(body, next, isGreedy);
    if (min === max && !hasChoices(body)) return node;
    if (max === Infinity && min <= 1 && (isGreedy || min === 0))
      return this.#rewriteUnbounded(body, min, isGreedy, next);
    if (hasGroup(body))
      throw new PatternError(
        'This regular expression repeats a group in a way that PostgreSQL cannot reproduce.',
        'Use (?:…) for the group, or * or + to repeat it.',
      );
    if (max === Infinity) {
      const more: Repetition = { kind: 'repetition', body, min: 0, max, isGreedy };
      return this.rewrite(concatenation([...Array<RegularExpression>(min).fill(body), more]), next);
    }
    let options: RegularExpression = emptyExpression;
    for (let count = min; count < max; count += 1)
      options = { kind: 'repetition', body: concatenation([body, options]), min: 0, max: 1, isGreedy };
    return this.rewrite(concatenation([...Array<RegularExpression>(min).fill(body), options]), next);
  }

  /** `x?` is skipped only if `x` cannot match, `x??` matches only if what follows cannot. */
  #rewriteOption(body: RegularExpression, next: RegularExpression, isGreedy: boolean): RegularExpression {
    const taken = this.rewrite(body, next);
    const branches = areDistinct(body, next)
      ? [taken, emptyExpression]
      : isGreedy
        ? [taken, not(concatenation([body, next]))]
        : [emptyExpression, unless(next, taken)];
    return { kind: 'alternation', branches };
  }

  /** `x*` ends only if another `x` cannot match; `x*?` goes on only if what follows cannot. */
  #rewriteUnbounded(
    body: RegularExpression,
    min: number,
    isGreedy: boolean,
    next: RegularExpression,
  ): RegularExpression {
    if (canBeEmpty(body))
      throw new PatternError(
        'This regular expression repeats something that can be empty, which PostgreSQL cannot reproduce here.',
        'Write (?:a+)* instead of (?:a*)*.',
      );
    if (!isGreedy && isAlwaysEmptyMatch(next) && !(min === 0 && hasGroup(body)))
      return min === 0 ? emptyExpression : this.rewrite(body, next);
    const more: Repetition = { kind: 'repetition', body, min: 0, max: Infinity, isGreedy };
    const once = this.rewrite(body, concatenation([more, next]));
    const repeated = (part: RegularExpression): RegularExpression => ({
      kind: 'repetition',
      body: part,
      min,
      max: Infinity,
      isGreedy: true,
    });
    if (areDistinct(body, next)) return repeated(once);
    if (!isGreedy) return repeated(unless(next, once));
    const another = isAlwaysEmptyMatch(next) ? body : concatenation([body, more, next]);
    return concatenation([repeated(once), not(another)]);
  }
}

const hasChoices = (node: RegularExpression): boolean =>
  node.kind === 'alternation' ||
  (node.kind === 'repetition' && node.min !== node.max) ||
  (node.kind === 'concatenation' && node.items.some(hasChoices)) ||
  ((node.kind === 'repetition' || node.kind === 'group') && hasChoices(node.body));
