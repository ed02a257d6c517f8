import {
  type CharacterRange,
  characterSet,
  type CharacterSet,
  escapedClasses,
  everyCharacter,
  foldCase,
  isLarge,
  maxCodePoint,
  namedClasses,
  negate,
  newline,
} from './character_set.ts';

/** Why a regular expression is invalid or unsupported, and what to write instead. */
export class PatternError extends Error {
  override readonly name = 'PatternError';
  readonly summary: string;
  readonly suggestion: string | null;

  constructor(summary: string, suggestion: string | null = null) {
    super(suggestion === null ? summary : `${summary} ${suggestion}`);
    this.summary = summary;
    this.suggestion = suggestion;
  }
}

const invalidPattern = (): PatternError => new PatternError('Invalid regular expression.');

export const tooComplex = (): PatternError =>
  new PatternError(
    'This regular expression is too complex for PostgreSQL.',
    'Use fewer alternatives and repetitions, or several expressions.',
  );

const unsupportedPart = (part: string, suggestion: string | null = null): PatternError =>
  new PatternError(`This regular expression contains ${part}, which is not supported.`, suggestion);

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

interface Repetition {
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
function alternation(branches: readonly RegularExpression[]): RegularExpression {
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

/** Far more than people write. Longer ones are lists of values, which IN compares faster. */
const maxPatternLength = 10_000;

/** Maximum nesting depth of groups, so that code may recurse over trees. */
const maxDepth = 100;

/** PostgreSQL's maximum repetition count. */
const maxRepetitions = 255;

/** Each takes milliseconds. */
const maxFoldedLargeSets = 5;

/** Flags that are set: `i` ignores case, `m` matches lines, `s` lets `.` match a newline, `U` swaps greediness. */
type Flags = ReadonlySet<string>;

/** ClickHouse sets `s` by default. */
const defaultFlags: Flags = new Set(['s']);

/** Parses a regular expression in RE2 syntax. @throws PatternError */
export function parsePattern(pattern: string): RegularExpression {
  if (pattern.length > maxPatternLength)
    throw new PatternError(`A regular expression has at most ${maxPatternLength} characters.`);
  const reader = new PatternReader(pattern);
  const tree = reader.alternation(defaultFlags, 0);
  if (!reader.isAtEnd) throw invalidPattern();
  return tree;
}

const letterEscapes: ReadonlyMap<string, number> = new Map([
  ['a', 7],
  ['f', 12],
  ['n', 10],
  ['r', 13],
  ['t', 9],
  ['v', 11],
]);

const positionEscapes: ReadonlyMap<string, Assertion> = new Map([
  ['A', 'text_start'],
  ['z', 'text_end'],
  ['b', 'word_boundary'],
  ['B', 'no_word_boundary'],
]);

/** A recursive-descent parser. */
class PatternReader {
  readonly #pattern: string;
  #position = 0;
  #foldedLargeSets = 0;

  constructor(pattern: string) {
    this.#pattern = pattern;
  }

  get isAtEnd(): boolean {
    return this.#position === this.#pattern.length;
  }

  /** Branches up to a closing parenthesis or the end. */
  alternation(outerFlags: Flags, depth: number): RegularExpression {
    if (depth > maxDepth)
      throw new PatternError(`A regular expression has at most ${maxDepth} nested groups.`);
    let flags = outerFlags;
    const branches: RegularExpression[] = [];
    let items: RegularExpression[] = [];
    for (;;) {
      if (this.isAtEnd || this.#next() === ')') break;
      if (this.#accept(/\|/y) !== undefined) {
        branches.push(concatenation(items));
        items = [];
        continue;
      }
      const changed = this.#accept(/\(\?([a-zA-Z]*)(?:-([a-zA-Z]+))?\)/y);
      if (changed !== undefined) {
        flags = withFlags(flags, changed[1] ?? '', changed[2] ?? '');
        continue;
      }
      const quoted = this.#accept(/\\Q([\s\S]*?)(?:\\E|$)/y)?.[1];
      if (quoted !== undefined) {
        items.push(...Array.from(quoted, (character) => this.#literal(character, flags)));
        continue;
      }
      items.push(this.#quantified(flags, depth));
    }
    branches.push(concatenation(items));
    return alternation(branches);
  }

  #quantified(flags: Flags, depth: number): RegularExpression {
    if (this.#accept(/[*+?]|\{\d+(?:,\d*)?\}/y) !== undefined) throw invalidPattern();
    const body = this.#atom(flags, depth);
    const found = this.#accept(/(?:([*+?])|\{(\d+)(,)?(\d*)\})(\?)?/y);
    if (found === undefined) return body;
    const [, sign, least = '', comma, most = '', lazy] = found;
    if (body.kind === 'assertion' || this.#accept(/[*+?]|\{\d+(?:,\d*)?\}/y) !== undefined)
      throw invalidPattern();
    const min = sign === undefined ? Number(least) : sign === '+' ? 1 : 0;
    const max =
      sign === undefined
        ? comma === undefined
          ? min
          : most === ''
            ? Infinity
            : Number(most)
        : sign === '?'
          ? 1
          : Infinity;
    if (min > maxRepetitions || (max !== Infinity && max > maxRepetitions))
      throw new PatternError(
        `This regular expression repeats something more than ${maxRepetitions} times.`,
        'Nest the repetition: (?:a{100}){3}.',
      );
    if (max < min) throw invalidPattern();
    return { kind: 'repetition', body, min, max, isGreedy: (lazy === undefined) !== flags.has('U') };
  }

  #atom(flags: Flags, depth: number): RegularExpression {
    if (this.#accept(/\(/y) !== undefined) return this.#group(flags, depth);
    if (this.#accept(/\^/y) !== undefined)
      return { kind: 'assertion', assertion: flags.has('m') ? 'line_start' : 'text_start' };
    if (this.#accept(/\$/y) !== undefined)
      return { kind: 'assertion', assertion: flags.has('m') ? 'line_end' : 'text_end' };
    if (this.#accept(/\./y) !== undefined)
      return { kind: 'set', set: flags.has('s') ? everyCharacter : negate(newline) };
    if (this.#accept(/\[/y) !== undefined) return { kind: 'set', set: this.#brackets(flags) };
    const position = this.#accept(/\\([AzbB])/y)?.[1];
    const assertion = position === undefined ? undefined : positionEscapes.get(position);
    if (assertion !== undefined) return { kind: 'assertion', assertion };
    const set = this.#escape();
    if (set !== undefined) return { kind: 'set', set: this.#folded(set, flags) };
    return this.#literal(this.#character(), flags);
  }

  #group(flags: Flags, depth: number): RegularExpression {
    const special = this.#accept(/\?(?:([a-zA-Z]*)(?:-([a-zA-Z]+))?:|P?<([A-Za-z_]\w*)>)/y);
    if (special === undefined && this.#accept(/\?/y) !== undefined)
      throw unsupportedPart(`(?${this.#next() ?? ''}`, 'Combine several conditions instead.');
    const [, set = '', unset = '', name] = special ?? [];
    const body = this.alternation(withFlags(flags, set, unset), depth + 1);
    if (this.#accept(/\)/y) === undefined) throw invalidPattern();
    return special === undefined || name !== undefined ? { kind: 'group', body } : nonCapturing(body);
  }

  /** A bracket expression, after its `[`. */
  #brackets(flags: Flags): CharacterSet {
    const isNegated = this.#accept(/\^/y) !== undefined;
    const ranges: CharacterRange[] = [];
    for (let isFirst = true; isFirst || this.#next() !== ']'; isFirst = false) {
      if (this.isAtEnd) throw invalidPattern();
      const set = this.#namedClass() ?? this.#escape() ?? this.#single();
      const [from] = set;
      const start = isSingle(set) && from !== undefined ? from[0] : undefined;
      if (start === undefined || this.#accept(/-(?!\])/y) === undefined) {
        ranges.push(...set);
        continue;
      }
      const end = this.#escape() ?? this.#single();
      const last = end[0]?.[0];
      if (!isSingle(end) || last === undefined || last < start) throw invalidPattern();
      ranges.push([start, last]);
    }
    this.#position += 1;
    const given = this.#folded(characterSet(ranges), flags);
    return isNegated ? negate(given) : given;
  }

  #namedClass(): CharacterSet | undefined {
    const found = this.#accept(/\[:(\^?)([^:\]]*):\]/y);
    if (found === undefined) return undefined;
    const [whole, negated, name = ''] = found;
    const set = namedClasses.get(name);
    if (set === undefined)
      throw new PatternError(`This regular expression contains ${whole}, which is not a character class.`);
    return negated === '^' ? negate(set) : set;
  }

  /** The characters that an escape stands for; undefined if the next character is no backslash. */
  #escape(): CharacterSet | undefined {
    if (this.#next() !== '\\') return undefined;
    const [escape, braced, two] = this.#accept(/\\x(?:\{([\da-fA-F]+)\}|([\da-fA-F]{2}))/y) ?? [];
    if (escape !== undefined) {
      const code = parseInt(braced ?? two ?? '', 16);
      if (!(code > 0 && code <= maxCodePoint)) throw unsupportedPart(escape);
      return [[code, code]];
    }
    this.#position += 1;
    const letter = this.#character();
    if (!/[\p{Letter}\p{Number}]/u.test(letter)) return single(letter);
    const code = letterEscapes.get(letter);
    const set = code === undefined ? escapedClasses.get(letter) : ([[code, code]] as const);
    if (set === undefined) throw unsupportedPart(`\\${letter}`, 'List the characters in brackets.');
    return set;
  }

  #single = (): CharacterSet => single(this.#character());

  #literal(character: string, flags: Flags): RegularExpression {
    return { kind: 'set', set: this.#folded(single(character), flags) };
  }

  #folded(set: CharacterSet, flags: Flags): CharacterSet {
    if (!flags.has('i')) return set;
    if (isLarge(set)) this.#foldedLargeSets += 1;
    if (this.#foldedLargeSets > maxFoldedLargeSets) throw tooComplex();
    return foldCase(set);
  }

  /** Takes the next character. @throws PatternError at the end */
  #character(): string {
    const code = this.#pattern.codePointAt(this.#position);
    if (code === undefined) throw invalidPattern();
    const character = String.fromCodePoint(code);
    this.#position += character.length;
    return character;
  }

  #next(): string | undefined {
    return this.#pattern[this.#position];
  }

  #accept(token: RegExp): RegExpExecArray | undefined {
    token.lastIndex = this.#position;
    const found = token.exec(this.#pattern);
    if (found === null) return undefined;
    this.#position += found[0].length;
    return found;
  }
}

/** A group that does not capture stays one node, so that a quantifier repeats all of it. */
const nonCapturing = (body: RegularExpression): RegularExpression =>
  body.kind === 'assertion' ? { kind: 'concatenation', items: [body, emptyExpression] } : body;

const single = (character: string): CharacterSet => {
  const code = character.codePointAt(0) ?? 0;
  return [[code, code]];
};

const isSingle = ([first, another]: CharacterSet): boolean =>
  first !== undefined && another === undefined && first[0] === first[1];

function withFlags(flags: Flags, set: string, unset: string): Flags {
  const unknown = /[^imsU]/.exec(set + unset);
  if (unknown !== null) throw unsupportedPart(`the flag ${unknown[0]}`, 'Supported flags are i, m, s and U.');
  return new Set([...flags, ...Array.from(set)].filter((flag) => !unset.includes(flag)));
}
