import type { Expression, OrderItem, Query } from '../ast.ts';
import { nonSelectStatements } from '../keywords.ts';
import { defaultLimits, type ParseLimits } from '../limits.ts';
import { Cursor, type Grammar } from './cursor.ts';
import { expression } from './expressions.ts';
import { orderItem } from './order_items.ts';
import { query } from './queries.ts';
import { selectItem } from './select.ts';

const grammar: Grammar = { expression, query };

/**
 * Parses one SELECT, or several joined by set operators, with at most one `;` behind it. Everything else is refused
 * with a {@link DialectError} that says where and, if it can, what was meant. It only reads: whether tables, fields
 * and functions exist is resolved later.
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

/** Parses a condition or a value, such as an entry of `where` or a breakdown. */
export function parseExpression(text: string, limits: ParseLimits = defaultLimits): Expression {
  return parseWhole(text, limits, expression);
}

/** Parses an entry of `select`: an expression that may have a name, or a star. */
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
