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

function translated(pattern: string, node: Node, statement: Statement): string {
  const found = missing.exec(pattern);
  if (found !== null)
    throw statement.error(
      `This regular expression has ${found[0]}, which is not supported.`,
      node,
      found[0].startsWith('(?')
        ? 'Flags such as (?i) stand at its beginning, groups have no names.'
        : 'Name the characters in brackets.',
    );
  const flags = /^\(\?([imsU-]+)\)/.exec(pattern);
  const body = flags === null ? pattern : pattern.slice(flags[0].length);
  if (!isExpression(body)) throw statement.error('This is no regular expression.', node);
  const written = body.replaceAll(/\\([\s\S])/g, (whole, letter: string) => otherwise[letter] ?? whole);
  return flags?.[1]?.includes('i') === true ? `(?i)${written}` : written;
}

function isExpression(text: string): boolean {
  try {
    new RegExp(text);
    return true;
  } catch {
    return false;
  }
}
