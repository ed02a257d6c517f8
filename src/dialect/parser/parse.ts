import type { Expression, OrderItem, Query } from '../ast.ts';
import { nonSelectStatements } from '../lexer.ts';
import { orderItem } from './calls.ts';
import { Cursor, defaultLimits, type Grammar, type ParseLimits } from './cursor.ts';
import { expression } from './expressions.ts';
import { query, selectItem } from './queries.ts';

const grammar: Grammar = { expression, query };

/**
 * Parses one SELECT or set operation with an optional trailing `;`. It does not check whether tables, fields and
 * functions exist; the resolver does.
 * @throws DialectError with the position and, if possible, a suggestion
 */
export function parseQuery(text: string, limits: ParseLimits = defaultLimits): Query {
  return parseWhole(text, limits, (cursor) => {
    rejectOtherStatements(cursor);
    const read = query(cursor);
    if (cursor.acceptSymbol(';') && !cursor.peekKind('end'))
      throw cursor.error(
        'Only one query can be run at a time.',
        cursor.token,
        'Remove everything after the `;`.',
      );
    return read;
  });
}

/** Parses an expression, such as an entry of `where` or a breakdown. */
export function parseExpression(text: string, limits: ParseLimits = defaultLimits): Expression {
  return parseWhole(text, limits, expression);
}

/** Parses an entry of `select`: an expression with an optional alias, or a star. */
export function parseSelectItem(text: string, limits: ParseLimits = defaultLimits): Expression {
  return parseWhole(text, limits, selectItem);
}

/** Parses an entry of `orderBy`. */
export function parseOrderItem(text: string, limits: ParseLimits = defaultLimits): OrderItem {
  return parseWhole(text, limits, orderItem);
}

function parseWhole<Result>(text: string, limits: ParseLimits, rule: (cursor: Cursor) => Result): Result {
  const cursor = new Cursor(text, grammar, limits);
  const result = rule(cursor);
  if (!cursor.peekKind('end')) throw cursor.unexpected('an operator, a clause or the end of the query');
  return result;
}

function rejectOtherStatements(cursor: Cursor): void {
  const { token } = cursor;
  if (token.kind === 'end') throw cursor.error('The query is empty.', token, 'Write a SELECT.');
  if (token.kind === 'word' && nonSelectStatements.has(token.upper))
    throw cursor.error(`Only SELECT is supported; found ${token.upper}.`, token);
}
