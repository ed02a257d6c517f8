import type { Node } from '../ast_node.ts';
import type { Statement } from '../resolve/statement.ts';
import type { Value } from '../resolve/value.ts';
import { bind, type Sql } from '../sql.ts';

/** What is written otherwise in the regular expressions of PostgreSQL than in those that analysts know (RE2). */
const otherwise: Readonly<Record<string, string>> = { b: '\\y', B: '\\Y', z: '\\Z', A: '\\A', a: '\\x07' };

/** What PostgreSQL has nothing for. */
const missing = /\\[pPCQE]|\(\?P?<(?![=!])|(?!^)\(\?[imsU-]+[:)]/;

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
  const found = missing.exec(pattern);
  const fault = (sentence: string, suggestion: string | null): PatternFault => ({
    sentence,
    suggestion,
    words: suggestion === null ? sentence : `${sentence} ${suggestion}`,
  });
  if (found !== null)
    return fault(
      `This regular expression has ${found[0]}, which is not supported.`,
      found[0].startsWith('(?')
        ? 'Flags such as (?i) stand at its beginning, groups have no names.'
        : 'Name the characters in brackets.',
    );
  return isExpression(withoutFlags(pattern)) ? null : fault('This is no regular expression.', null);
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
