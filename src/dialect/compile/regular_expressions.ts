import type { Node } from '../ast_node.ts';
import { PatternError } from '../regular_expressions/pattern_error.ts';
import { type PatternUse, translatePattern } from '../regular_expressions/translate.ts';
import type { Statement } from '../resolve/statement.ts';
import type { Value } from '../resolve/value.ts';
import { bind, sql, type Sql } from '../sql.ts';

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
