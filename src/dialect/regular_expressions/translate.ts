import type { Node } from '../ast.ts';
import type { Statement } from '../resolve/statement.ts';
import type { Value } from '../resolve/value.ts';
import { bind, sql, type Sql } from '../sql.ts';
import { type CharacterSet, maxCodePoint, negate, wordCharacters } from './character_set.ts';
import { type MatchLength, matchLengthOf } from './match_order.ts';
import {
  type Assertion,
  parsePattern,
  PatternError,
  type RegularExpression,
  tooComplex,
  withoutGroups,
} from './parse.ts';

/** Longer expressions take PostgreSQL too much time and memory. */
const maxLength = 30_000;

/**
 * Prints a regular expression in PostgreSQL's syntax. For the longest match, all repetitions become greedy. The expression
 * contains no classes such as \w, whose meaning depends on the locale.
 * @throws PatternError if it is too long
 */
function printPattern(tree: RegularExpression, areGroupsCapturing: boolean, length: MatchLength): string {
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

/** What is read of a match: whether there is one, its text, or what its groups captured. */
export type PatternUse = 'match' | 'text' | 'groups';

/**
 * Translates a regular expression from RE2 syntax to PostgreSQL's. It then finds the matches that RE2 finds.
 * @throws PatternError if it is invalid or cannot be translated
 */
export function translatePattern(pattern: string, use: PatternUse): string {
  const tree = parsePattern(pattern);
  if (use === 'match') return printPattern(tree, false, 'longest');
  const read = use === 'groups' ? tree : withoutGroups(tree);
  return printPattern(read, use === 'groups', matchLengthOf(read));
}

/**
 * A regular expression in PostgreSQL's syntax. Literals are translated from RE2's. Other expressions can only be
 * matched, and have to mean the same in both.
 * @throws DialectError if it is invalid or cannot be translated
 */
export function toPostgresPattern(value: Value, node: Node, statement: Statement, use: PatternUse): Sql {
  const { constant } = value;
  if (typeof constant === 'string') {
    try {
      return bind(translatePattern(constant, use), 'text');
    } catch (error) {
      if (!(error instanceof PatternError)) throw error;
      throw statement.error(error.summary, node, error.suggestion);
    }
  }
  if (use !== 'match' && constant !== null)
    throw statement.error(
      'This regular expression must be a string literal.',
      node,
      'Only match(…), multiMatchAny(…) and =~ accept other expressions.',
    );
  return checkedPattern(value.sql);
}

/** A regular expression that is not a literal, as long as RE2 and PostgreSQL read it alike; else one that fails. */
export const checkedPattern = (pattern: Sql): Sql =>
  sql`(case when ((${pattern}) ~ ${bind(sharedSyntax, 'text')}) is false then '[' else ${pattern} end)`;

/** What RE2 and PostgreSQL read alike: no escapes with letters, no classes, no flags but (?i). */
const sharedSyntax = String.raw`^(?!\*\*\*)(?:\(\?i\))?(?:[^\\[(]|\((?!\?)|\(\?:|\\[^A-Za-z0-9]|\[\^?\]?[^]\\[]*\])*$`;

/** The error in a regular expression that is only matched; null if it is valid. */
export function regularExpressionError(pattern: string): PatternError | null {
  try {
    translatePattern(pattern, 'match');
    return null;
  } catch (error) {
    if (error instanceof PatternError) return error;
    throw error;
  }
}
