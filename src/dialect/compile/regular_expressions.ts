import type { Node } from '../ast_node.ts';
import type { Statement } from '../resolve/statement.ts';
import type { Value } from '../resolve/value.ts';
import { bind, type Sql } from '../sql.ts';

/** Why a text is no regular expression that can be run, and what to write instead. */
export interface PatternFault {
  readonly sentence: string;
  readonly suggestion: string | null;
  /** Both. */
  readonly words: string;
}

/**
 * A regular expression as PostgreSQL reads it. One that is written out is translated from the syntax that analysts know
 * (RE2), another is taken as it is.
 * @throws DialectError for what cannot be translated, or is none
 */
export function patternOf(value: Value, node: Node, statement: Statement): Sql {
  const { constant } = value;
  if (typeof constant !== 'string') return value.sql;
  const pattern = translated(constant);
  if (isFault(pattern)) throw statement.error(pattern.sentence, node, pattern.suggestion);
  return bind(pattern, 'text');
}

/** What is wrong with a regular expression; null where nothing is. */
export function regularExpressionFault(pattern: string): PatternFault | null {
  const piece = translated(pattern);
  return isFault(piece) ? piece : null;
}

/** A part of a regular expression in PostgreSQL's words. */
type Piece = string | PatternFault;

const isText = (piece: Piece): piece is string => typeof piece === 'string';
const isFault = (piece: Piece): piece is PatternFault => !isText(piece);

const joined = (pieces: readonly Piece[]): Piece => pieces.find(isFault) ?? pieces.filter(isText).join('');

const faultOf = (sentence: string, suggestion: string | null = null): PatternFault => ({
  sentence,
  suggestion,
  words: suggestion === null ? sentence : `${sentence} ${suggestion}`,
});

const notSupported = (part: string, suggestion: string | null = null): PatternFault =>
  faultOf(`This regular expression has ${part}, which is not supported.`, suggestion);

const noExpression = faultOf('This is no regular expression.');

const flagsInFront = /^\(\?([a-z]*)(?:-([a-z]+))?\)/i;

function translated(pattern: string): Piece {
  const [written = '', set = '', unset = ''] = flagsInFront.exec(pattern) ?? [];
  const pieces = Array.from(pattern.slice(written.length).matchAll(parts), pieceOf);
  const whole = joined([flagsPiece(set, unset), ...pieces]);
  return isFault(whole) || isWellFormed(pieces.filter(isText)) ? whole : noExpression;
}

/** Flags of the whole: PostgreSQL has a letter for each meeting of `m` and `-s`, since `.` is any character without them. */
function flagsPiece(set: string, unset: string): Piece {
  const unknown = /[^ims]/.exec(set + unset);
  if (unknown !== null) return notSupported(`the flag ${unknown[0]}`, 'Flags are i, m and s.');
  const is = (flag: string): boolean => set.includes(flag) && !unset.includes(flag);
  const [ofLines, ofDots] = is('m') ? ['w', 'n'] : ['', 'p'];
  const options = (is('i') ? 'i' : '') + (unset.includes('s') ? ofDots : ofLines);
  return options === '' ? '' : `(?${options})`;
}

/** Characters that are written by their codes. */
const codes = String.raw`\\x\{[\da-f]+\}|\\x[\da-f]{2}`;

/** What is read as one: an escape, characters in brackets, bounds of a repetition, the begin of a group, or a character. */
const parts = new RegExp(
  [
    ...[codes, String.raw`\\[\s\S]?`],
    String.raw`\[(?:\^\]|\^(?!\])|\]|(?![\]^]))(?:\[:[^:\]]*:\]|\\[\s\S]|\[(?!:)|[^\]\\[])*\]`,
    String.raw`\{\d+(?:,\d*)?\}`,
    ...[String.raw`\(\?(?:[:=!]|<[=!])`, String.raw`\(\?(?:P?<\w+>|[\w-]+[:)])?`],
    String.raw`[\s\S]`,
  ].join('|'),
  'gi',
);

const isGroup = /^\(\?(?:[:=!]|<[=!])$/;

function pieceOf([part]: RegExpExecArray): Piece {
  if (part.startsWith('\\')) return escapePiece(part, escapes);
  if (part === '[') return noExpression;
  if (part.startsWith('[')) return bracketPiece(part);
  if (part === '{') return '\\{';
  if (part.startsWith('{')) return boundsPiece(part);
  if (!part.startsWith('(?') || isGroup.test(part)) return part;
  return notSupported(part, 'Flags such as (?i) stand at its beginning, groups have no names.');
}

type Escapes = Readonly<Record<string, string>>;

/** Letters behind a backslash that are characters, or classes of them. */
const characterEscapes: Escapes = Object.fromEntries(
  Array.from('afnrtvdDsSwW', (letter) => [letter, `\\${letter}`]),
);

/** With those that are places, which have no meaning in brackets. */
const escapes: Escapes = { ...characterEscapes, A: '\\A', b: '\\y', B: '\\Y', z: '\\Z' };

function escapePiece(escape: string, known: Escapes): Piece {
  const digits = /^\\x\{?([\da-f]+)/i.exec(escape)?.[1];
  if (digits !== undefined) {
    const code = parseInt(digits, 16);
    // Behind \x PostgreSQL reads as many digits as there are.
    return code > 0 && code <= lastCharacter
      ? `\\U${code.toString(16).padStart(8, '0')}`
      : notSupported(escape);
  }
  const letter = escape.slice(1);
  if (letter === '') return noExpression;
  if (!/[\p{Letter}\p{Number}]/u.test(letter)) return escape;
  return known[letter] ?? notSupported(escape, 'Name the characters in brackets.');
}

const lastCharacter = 0x10ffff;

const characterClasses: ReadonlySet<string> = new Set([
  ...['alnum', 'alpha', 'ascii', 'blank', 'cntrl', 'digit', 'graph'],
  ...['lower', 'print', 'punct', 'space', 'upper', 'word', 'xdigit'],
]);

/** What is read as one inside of brackets. */
const partsOfBrackets = new RegExp(String.raw`\[:([^:\]]*):\]|${codes}|\\?[\s\S]`, 'gi');

function bracketPiece(brackets: string): Piece {
  const pieces = Array.from(brackets.slice(1).matchAll(partsOfBrackets), ([part, name]): Piece => {
    if (name !== undefined)
      return characterClasses.has(name)
        ? part
        : faultOf(`This regular expression has ${part}, which is no class of characters.`);
    if (part.startsWith('\\')) return escapePiece(part, characterEscapes);
    // It begins more in PostgreSQL than classes.
    return part === '[' ? '\\[' : part;
  });
  return joined(['[', ...pieces]);
}

/** How often something may be repeated, for PostgreSQL. */
const mostRepeated = 255;

const boundsPiece = (bounds: string): Piece =>
  bounds.match(/\d+/g)?.some((times) => Number(times) > mostRepeated) === true
    ? faultOf(
        `This regular expression repeats something more than ${mostRepeated} times.`,
        'Repeat a group of it: (?:a{100}){3}.',
      )
    : bounds;

/** Whether groups are closed and repetitions are of something, which JavaScript sees as PostgreSQL does. */
function isWellFormed(pieces: readonly string[]): boolean {
  try {
    new RegExp(pieces.map((piece) => (piece.startsWith('[') ? 'a' : piece)).join(''));
    return true;
  } catch {
    return false;
  }
}
