import { type CharacterSet, maxCodePoint, negate, wordCharacters } from './character_set.ts';
import type { MatchLength } from './match_order.ts';
import { tooComplex } from './pattern_error.ts';
import type { Assertion, RegularExpression } from './syntax_tree.ts';

/** Longer expressions take PostgreSQL too much time and memory. */
const maxLength = 30_000;

/**
 * Prints a regular expression in PostgreSQL's syntax. For the longest match, all repetitions become greedy. The expression
 * contains no classes such as \w, whose meaning depends on the locale.
 * @throws PatternError if it is too long
 */
export function printPattern(
  tree: RegularExpression,
  areGroupsCapturing: boolean,
  length: MatchLength,
): string {
  const printer = new Printer(areGroupsCapturing, length !== 'longest');
  printer.alternation(tree);
  if (length === 'longest') return printer.text;
  // PostgreSQL otherwise takes the greediness of the first repetition for the whole match.
  return `(?:${printer.text}){1,1}${length === 'shortest' ? '?' : ''}`;
}

class Printer {
  readonly #areGroupsCapturing: boolean;
  readonly #isGreedinessKept: boolean;
  #length = 0;
  readonly #parts: string[] = [];

  constructor(areGroupsCapturing: boolean, isGreedinessKept: boolean) {
    this.#areGroupsCapturing = areGroupsCapturing;
    this.#isGreedinessKept = isGreedinessKept;
  }

  get text(): string {
    return this.#parts.join('');
  }

  #write(part: string): void {
    this.#parts.push(part);
    this.#length += part.length;
    if (this.#length > maxLength) throw tooComplex();
  }

  alternation(node: RegularExpression): void {
    if (node.kind !== 'alternation') {
      this.#sequence(node);
      return;
    }
    for (const [index, branch] of node.branches.entries()) {
      if (index > 0) this.#write('|');
      this.#sequence(branch);
    }
  }

  #sequence(node: RegularExpression): void {
    if (node.kind !== 'concatenation') {
      this.#quantified(node);
      return;
    }
    if (node.items.length === 0) this.#write('(?:)');
    for (const item of node.items) this.#quantified(item);
  }

  #quantified(node: RegularExpression): void {
    if (node.kind !== 'repetition') {
      this.#atom(node);
      return;
    }
    if (node.max === 0) {
      this.#write('(?:)');
      return;
    }
    this.#atom(node.body, true);
    const isLazy = this.#isGreedinessKept && !node.isGreedy;
    this.#write(quantifierOf(node.min, node.max) + (isLazy ? '?' : ''));
  }

  #atom(node: RegularExpression, isRepeated = false): void {
    switch (node.kind) {
      case 'set':
        this.#write(printSet(node.set));
        return;
      case 'assertion':
        if (isRepeated) break;
        this.#write(assertions[node.assertion]);
        return;
      case 'group':
        this.#enclosed(this.#areGroupsCapturing ? '(' : '(?:', node.body);
        return;
      default:
        break;
    }
    this.#enclosed('(?:', node);
  }

  #enclosed(start: string, node: RegularExpression): void {
    this.#write(start);
    this.alternation(node);
    this.#write(')');
  }
}

function quantifierOf(min: number, max: number): string {
  if (max === Infinity) return min === 0 ? '*' : min === 1 ? '+' : `{${min},}`;
  if (min === 0 && max === 1) return '?';
  return min === max ? `{${min}}` : `{${min},${max}}`;
}

function printSet(set: CharacterSet): string {
  const isNegated = set.at(-1)?.[1] === maxCodePoint;
  const ranges = isNegated ? negate(set) : set;
  const [first, another] = ranges;
  if (first === undefined) return isNegated ? '.' : nothing;
  if (!isNegated && another === undefined && first[0] === first[1]) return printCharacter(first[0]);
  const printed = ranges.map(([from, to]) =>
    from === to ? printCharacter(from) : `${printCharacter(Math.max(from, 1))}-${printCharacter(to)}`,
  );
  return `[${isNegated ? '^' : ''}${printed.join('')}]`;
}

/** A character that no text contains. */
const nothing = String.raw`\U00110000`;

const lastAscii = 0x7f;

/** Characters with a meaning, inside or outside of brackets. */
const special = /[\\^$.[\]|()?*+{}-]/;

function printCharacter(codePoint: number): string {
  const character = String.fromCodePoint(codePoint);
  if (special.test(character)) return `\\${character}`;
  if (codePoint >= 0x20 && codePoint < lastAscii) return character;
  return `\\U${Math.max(codePoint, 1).toString(16).padStart(8, '0')}`;
}

const word = printSet(wordCharacters);

const assertions: Readonly<Record<Assertion, string>> = {
  text_start: '^',
  text_end: '$',
  line_start: String.raw`(?:^|(?<=\n))`,
  line_end: String.raw`(?:$|(?=\n))`,
  word_boundary: `(?:(?<=${word})(?!${word})|(?<!${word})(?=${word}))`,
  no_word_boundary: `(?:(?<=${word})(?=${word})|(?<!${word})(?!${word}))`,
};
