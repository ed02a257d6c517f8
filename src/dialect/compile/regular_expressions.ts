import type { Node } from '../ast_node.ts';
import type { Statement } from '../resolve/statement.ts';
import type { Value } from '../resolve/value.ts';
import { bind, type Sql } from '../sql.ts';

/** Why a regular expression is invalid or unsupported, and what to write instead. */
export interface PatternError {
  readonly summary: string;
  readonly suggestion: string | null;
  /** Summary and suggestion. */
  readonly message: string;
}

/**
 * Translates a regular expression literal from RE2 syntax to PostgreSQL's; other expressions pass unchanged.
 * @throws DialectError if it is invalid or cannot be translated
 */
export function toPostgresPattern(value: Value, node: Node, statement: Statement): Sql {
  const { constant } = value;
  if (typeof constant !== 'string') return value.sql;
  const pattern = translate(constant);
  if (isPatternError(pattern)) throw statement.error(pattern.summary, node, pattern.suggestion);
  return bind(pattern, 'text');
}

/** The error in a regular expression; null if it is valid. */
export function regularExpressionError(pattern: string): PatternError | null {
  const part = translate(pattern);
  return isPatternError(part) ? part : null;
}

/** A part of a regular expression in PostgreSQL syntax, or an error. */
type TranslatedPart = string | PatternError;

const isTranslated = (part: TranslatedPart): part is string => typeof part === 'string';
const isPatternError = (part: TranslatedPart): part is PatternError => !isTranslated(part);

const joinParts = (translatedParts: readonly TranslatedPart[]): TranslatedPart =>
  translatedParts.find(isPatternError) ?? translatedParts.filter(isTranslated).join('');

const patternError = (summary: string, suggestion: string | null = null): PatternError => ({
  summary,
  suggestion,
  message: suggestion === null ? summary : `${summary} ${suggestion}`,
});

const unsupported = (part: string, suggestion: string | null = null): PatternError =>
  patternError(`This regular expression contains ${part}, which is not supported.`, suggestion);

const invalidPattern = patternError('Invalid regular expression.');

const leadingFlags = /^\(\?([a-z]*)(?:-([a-z]+))?\)/i;

function translate(pattern: string): TranslatedPart {
  if (pattern.length > maxPatternLength)
    return patternError(`A regular expression has at most ${maxPatternLength} characters.`);
  const [flags = '', set = '', unset = ''] = leadingFlags.exec(pattern) ?? [];
  const translatedParts: string[] = [];
  // Stops at the first error: each `[` that is not closed would be searched for its end again.
  for (const found of pattern.slice(flags.length).matchAll(patternParts)) {
    const part = translatePart(found);
    if (isPatternError(part)) return part;
    translatedParts.push(part);
  }
  const options = translateFlags(set, unset);
  if (isPatternError(options)) return options;
  return isWellFormed(translatedParts) ? [options, ...translatedParts].join('') : invalidPattern;
}

/** Far more than people write. Longer ones are lists of values, which IN compares faster. */
const maxPatternLength = 10_000;

/**
 * The leading flags. PostgreSQL has one letter for each combination of `m` and `-s`, because without them `.`
 * matches any character.
 */
function translateFlags(set: string, unset: string): TranslatedPart {
  const unknown = /[^ims]/.exec(set + unset);
  if (unknown !== null) return unsupported(`the flag ${unknown[0]}`, 'Supported flags are i, m and s.');
  const is = (flag: string): boolean => set.includes(flag) && !unset.includes(flag);
  const [ofLines, ofDots] = is('m') ? ['w', 'n'] : ['', 'p'];
  const options = (is('i') ? 'i' : '') + (unset.includes('s') ? ofDots : ofLines);
  return options === '' ? '' : `(?${options})`;
}

/** Characters written as code points. */
const codePointEscapes = String.raw`\\x\{[\da-f]+\}|\\x[\da-f]{2}`;

/** The parts of a pattern: escapes, bracket expressions, repetition bounds, starts of groups, characters. */
const patternParts = new RegExp(
  [
    ...[codePointEscapes, String.raw`\\[\s\S]?`],
    String.raw`\[(?:\^\]|\^(?!\])|\]|(?![\]^]))(?:\[:[^:\]]*:\]|\\[\s\S]|\[(?!:)|[^\]\\[])*\]`,
    String.raw`\{\d+(?:,\d*)?\}`,
    ...[String.raw`\(\?(?:[:=!]|<[=!])`, String.raw`\(\?(?:P?<\w+>|[\w-]+[:)])?`],
    String.raw`[\s\S]`,
  ].join('|'),
  'gi',
);

const isGroup = /^\(\?(?:[:=!]|<[=!])$/;

function translatePart([part]: RegExpExecArray): TranslatedPart {
  if (part.startsWith('\\')) return translateEscape(part, escapes);
  if (part === '[') return invalidPattern;
  if (part.startsWith('[')) return translateBracket(part);
  if (part === '{') return '\\{';
  if (part.startsWith('{')) return translateBounds(part);
  if (!part.startsWith('(?') || isGroup.test(part)) return part;
  return unsupported(part, 'Put flags such as (?i) at the start; named groups are not supported.');
}

type EscapeTable = Readonly<Record<string, string>>;

/** Escapes that are characters or character classes. */
const characterEscapes: EscapeTable = Object.fromEntries(
  Array.from('afnrtvdDsSwW', (letter) => [letter, `\\${letter}`]),
);

/** With those that are positions, which are invalid in brackets. */
const escapes: EscapeTable = { ...characterEscapes, A: '\\A', b: '\\y', B: '\\Y', z: '\\Z' };

function translateEscape(escape: string, known: EscapeTable): TranslatedPart {
  const digits = /^\\x\{?([\da-f]+)/i.exec(escape)?.[1];
  if (digits !== undefined) {
    const code = parseInt(digits, 16);
    // After \x PostgreSQL would read any number of digits.
    return code > 0 && code <= maxCodePoint
      ? `\\U${code.toString(16).padStart(8, '0')}`
      : unsupported(escape);
  }
  const letter = escape.slice(1);
  if (letter === '') return invalidPattern;
  if (!/[\p{Letter}\p{Number}]/u.test(letter)) return escape;
  return known[letter] ?? unsupported(escape, 'List the characters in brackets.');
}

const maxCodePoint = 0x10ffff;

const characterClasses: ReadonlySet<string> = new Set([
  ...['alnum', 'alpha', 'ascii', 'blank', 'cntrl', 'digit', 'graph'],
  ...['lower', 'print', 'punct', 'space', 'upper', 'word', 'xdigit'],
]);

/** The parts of a bracket expression. */
const bracketParts = new RegExp(String.raw`\[:([^:\]]*):\]|${codePointEscapes}|\\?[\s\S]`, 'gi');

function translateBracket(brackets: string): TranslatedPart {
  const translatedParts = Array.from(
    brackets.slice(1).matchAll(bracketParts),
    ([part, name]): TranslatedPart => {
      if (name !== undefined)
        return characterClasses.has(name)
          ? part
          : patternError(`This regular expression contains ${part}, which is not a character class.`);
      if (part.startsWith('\\')) return translateEscape(part, characterEscapes);
      // In PostgreSQL `[` starts more than a character class.
      return part === '[' ? '\\[' : part;
    },
  );
  return joinParts(['[', ...translatedParts]);
}

/** PostgreSQL's maximum repetition count. */
const maxRepetitions = 255;

const translateBounds = (bounds: string): TranslatedPart =>
  bounds.match(/\d+/g)?.some((times) => Number(times) > maxRepetitions) === true
    ? patternError(
        `This regular expression repeats something more than ${maxRepetitions} times.`,
        'Nest the repetition: (?:a{100}){3}.',
      )
    : bounds;

/** Whether groups and repetitions are well-formed. JavaScript and PostgreSQL agree on that. */
function isWellFormed(translatedParts: readonly string[]): boolean {
  try {
    new RegExp(translatedParts.map((part) => (part.startsWith('[') ? 'a' : part)).join(''));
    return true;
  } catch {
    return false;
  }
}
