import type { Expression, Field, Subquery, Tuple } from '../ast.ts';
import { commonNameKeywords, operatorFunctions, reservedWords } from '../keywords.ts';
import { item } from './aliases.ts';
import { call } from './calls.ts';
import { type Cursor, keywordOf } from './cursor.ts';
import { peekLambda, lambda } from './lambdas.ts';
import {
  array,
  braces,
  numberLiteral,
  stringLiteral,
  template,
  timeLiteral,
  keywordLiteral,
} from './literals.ts';
import { readName } from './names.ts';
import { peekParenthesizedQuery } from './parenthesized_query.ts';
import { caseExpression, cast, columns, extract, interval, trim } from './keyword_expressions.ts';

const expectedValue = 'an expression';

/** An operand without operators. `amountOf` reads the amount of an INTERVAL. */
export function primary(cursor: Cursor, amountOf: (cursor: Cursor) => Expression): Expression {
  if (peekLambda(cursor)) return lambda(cursor);
  const { token } = cursor;
  switch (token.kind) {
    case 'number':
      return numberLiteral(cursor);
    case 'string':
      return stringLiteral(cursor);
    case 'template_start':
      return template(cursor);
    case 'quoted_name':
      return fieldOrCall(cursor);
    case 'word':
      return keywordExpression(cursor, amountOf);
    case 'symbol':
      return symbolExpression(cursor);
    case 'template_text':
    case 'template_end':
    case 'invalid':
    case 'end':
      throw cursor.unexpected(expectedValue);
  }
}

function symbolExpression(cursor: Cursor): Expression {
  if (cursor.peekSymbol('(')) return parentheses(cursor);
  if (cursor.peekSymbol('[')) return array(cursor);
  if (cursor.peekSymbol('{')) return braces(cursor);
  if (cursor.peekSymbol('<') && cursor.peek(1).kind === 'word')
    throw cursor.error(
      'Tags such as <Sparkline … /> are not supported.',
      cursor.token,
      'Use a function instead.',
    );
  if (cursor.peekSymbol('*'))
    throw cursor.error('`*` is allowed only in SELECT, in COLUMNS() and as a function argument.');
  throw cursor.unexpected(expectedValue);
}

function keywordExpression(cursor: Cursor, amountOf: (cursor: Cursor) => Expression): Expression {
  const word = keywordOf(cursor.token) ?? '';
  if (!cursor.peekSymbol('(', 1)) {
    if (word === 'ARRAY' && cursor.peekSymbol('[', 1)) return array(cursor);
    const literal = keywordLiteral(cursor) ?? timeLiteral(cursor);
    if (literal !== undefined) return literal;
  }
  if (word === 'CASE') return caseExpression(cursor);
  return (
    interval(cursor, amountOf) ??
    cast(cursor) ??
    extract(cursor) ??
    trim(cursor) ??
    columns(cursor) ??
    fieldOrCall(cursor)
  );
}

/** A name followed by parentheses is a call, otherwise the start of a field. */
function fieldOrCall(cursor: Cursor): Expression {
  const { token } = cursor;
  const isCall = cursor.peekSymbol('(', 1);
  if (token.kind === 'word' && reservedWords.has(token.upper)) {
    if (!isCall || !operatorFunctions.has(token.upper)) throw keywordAsValue(cursor);
  }
  const name = readName(cursor);
  if (isCall) return call(cursor, name);
  return cursor.node<Field>(token.start, { kind: 'field', path: [name] });
}

function keywordAsValue(cursor: Cursor): Error {
  const { token } = cursor;
  if (cursor.peekKeywords('SELECT') || cursor.peekKeywords('WITH'))
    return cursor.error(
      `Expected ${expectedValue}, found a query.`,
      token,
      'Write a subquery in parentheses.',
    );
  return cursor.error(
    `Expected ${expectedValue}, found the keyword \`${token.text}\`.`,
    token,
    commonNameKeywords.has(keywordOf(token) ?? '')
      ? `Write a column of this name in backticks: \`${token.text}\`.`
      : null,
  );
}

/** A subquery, an expression or a tuple in parentheses. */
function parentheses(cursor: Cursor): Expression {
  const { start } = cursor.token;
  if (peekParenthesizedQuery(cursor)) {
    const query = cursor.parenthesized(() => cursor.grammar.query(cursor));
    return cursor.node<Subquery>(start, { kind: 'subquery', query });
  }
  cursor.advance();
  if (cursor.peekSymbol(')'))
    throw cursor.error(
      'These parentheses are empty.',
      { start, end: cursor.token.end },
      'Write tuple() for an empty tuple.',
    );
  const items = [item(cursor)];
  let isTuple = false;
  while (cursor.acceptSymbol(',')) {
    isTuple = true;
    if (cursor.peekSymbol(')')) break;
    items.push(item(cursor));
  }
  cursor.expectSymbol(')', '`,` or `)`');
  const [only] = items;
  if (!isTuple && only !== undefined) return only;
  return cursor.node<Tuple>(start, { kind: 'tuple', items });
}
