import type { Node } from '../ast_node.ts';
import type { Statement } from '../resolve/statement.ts';
import type { Value } from '../resolve/value.ts';
import { bind, type Sql } from '../sql.ts';

/** What is written otherwise in the regular expressions of PostgreSQL than in those that analysts know (RE2). */
const otherwise: Readonly<Record<string, string>> = { b: '\\y', B: '\\Y', z: '\\Z', A: '\\A', a: '\\x07' };

/** What PostgreSQL has nothing for. */
const missing = /\\[pPCQE]|\(\?P?<(?![=!])|(?!^)\(\?[imsU-]+[:)]/;

/** How often something may be repeated, for PostgreSQL. */
const mostRepeated = 255;

/** A letter that is escaped, or the bounds of a repetition. */
const bounds = /\\[\s\S]|\{(\d+)(?:,(\d*))?\}/g;

/** A class of characters by its name, inside of brackets. */
const classNames = /(?<=\[[^\]]*)\[:([^:\]]+):\]/g;

const characterClasses: ReadonlySet<string | undefined> = new Set([
  ...['alnum', 'alpha', 'ascii', 'blank', 'cntrl', 'digit', 'graph'],
  ...['lower', 'print', 'punct', 'space', 'upper', 'word', 'xdigit'],
]);

/**
 * A regular expression as PostgreSQL reads it. One that is written out is translated, another is taken as it is.
 * @throws DialectError for what cannot be translated, or is none
 */
export function patternOf(value: Value, node: Node, statement: Statement): Sql {
  const { constant } = value;
  return typeof constant === 'string' ? bind(translated(constant, node, statement), 'text') : value.sql;
}

/** Why a text is no regular expression that can be run, and what to write instead. */
export interface PatternFault {
  readonly sentence: string;
  readonly suggestion: string | null;
  /** Both. */
  readonly words: string;
}

/** What is wrong with a regular expression; null where nothing is. */
export function regularExpressionFault(pattern: string): PatternFault | null {
  const found = faultIn(pattern);
  if (found === null) return null;
  const [sentence, suggestion] = found;
  return { sentence, suggestion, words: suggestion === null ? sentence : `${sentence} ${suggestion}` };
}

function faultIn(pattern: string): readonly [sentence: string, suggestion: string | null] | null {
  const [lacking] = missing.exec(pattern) ?? [];
  if (lacking !== undefined)
    return [
      `This regular expression has ${lacking}, which is not supported.`,
      lacking.startsWith('(?')
        ? 'Flags such as (?i) stand at its beginning, groups have no names.'
        : 'Name the characters in brackets.',
    ];
  if (!isExpression(withoutFlags(pattern))) return ['This is no regular expression.', null];
  const repetitions = [...pattern.matchAll(bounds)].flatMap(([, least, most]) => [
    Number(least),
    Number(most),
  ]);
  if (repetitions.some((times) => times > mostRepeated))
    return [
      `This regular expression repeats something more than ${mostRepeated} times.`,
      'Repeat a group of it: (?:a{100}){3}.',
    ];
  const named = [...pattern.matchAll(classNames)].find(([, name]) => !characterClasses.has(name));
  return named === undefined
    ? null
    : [`This regular expression has ${named[0]}, which is no class of characters.`, null];
}

const flagsOf = (pattern: string): RegExpExecArray | null => /^\(\?([imsU-]+)\)/.exec(pattern);
const withoutFlags = (pattern: string): string => pattern.slice(flagsOf(pattern)?.[0].length ?? 0);

function translated(pattern: string, node: Node, statement: Statement): string {
  const fault = regularExpressionFault(pattern);
  if (fault !== null) throw statement.error(fault.sentence, node, fault.suggestion);
  const written = withoutFlags(pattern).replaceAll(
    /\\([\s\S])/g,
    (whole, letter: string) => otherwise[letter] ?? whole,
  );
  return flagsOf(pattern)?.[1]?.includes('i') === true ? `(?i)${written}` : written;
}

function isExpression(text: string): boolean {
  try {
    new RegExp(text);
    return true;
  } catch {
    return false;
  }
}
