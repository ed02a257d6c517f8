import type { Expression, Field, Subquery, Tuple } from '../ast.ts';
import { likelyNames, operatorFunctions, reservedWords } from '../keywords.ts';
import { item } from './aliases.ts';
import { call } from './calls.ts';
import { type Cursor, wordOf } from './cursor.ts';
import { atLambda, lambda } from './lambdas.ts';
import {
  array,
  braces,
  numberLiteral,
  stringLiteral,
  template,
  timeLiteral,
  wordLiteral,
} from './literals.ts';
import { takeName } from './names.ts';
import { atBracketedQuery } from './query_brackets.ts';
import { caseExpression, cast, columns, extract, interval, trim } from './word_expressions.ts';

const whatValue = 'an expression';

/** A value without the operators round it. `amountOf` reads the amount of an INTERVAL. */
export function primary(cursor: Cursor, amountOf: (cursor: Cursor) => Expression): Expression {
  if (atLambda(cursor)) return lambda(cursor);
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
      return wordExpression(cursor, amountOf);
    case 'symbol':
      return symbolExpression(cursor);
    case 'template_text':
    case 'template_end':
    case 'invalid':
    case 'end':
      throw cursor.unexpected(whatValue);
  }
}

function symbolExpression(cursor: Cursor): Expression {
  if (cursor.atSymbol('(')) return brackets(cursor);
  if (cursor.atSymbol('[')) return array(cursor);
  if (cursor.atSymbol('{')) return braces(cursor);
  if (cursor.atSymbol('<') && cursor.peek(1).kind === 'word')
    throw cursor.error(
      'Tags such as <Sparkline … /> are not supported.',
      cursor.token,
      'Call a function instead.',
    );
  if (cursor.atSymbol('*'))
    throw cursor.error('`*` stands only in SELECT, in COLUMNS() and in the brackets of a call.');
  throw cursor.unexpected(whatValue);
}

function wordExpression(cursor: Cursor, amountOf: (cursor: Cursor) => Expression): Expression {
  const word = wordOf(cursor.token) ?? '';
  if (!cursor.atSymbol('(', 1)) {
    if (word === 'ARRAY' && cursor.atSymbol('[', 1)) return array(cursor);
    const literal = wordLiteral(cursor) ?? timeLiteral(cursor);
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

/** A name with brackets behind it is a call, without them the beginning of a field. */
function fieldOrCall(cursor: Cursor): Expression {
  const { token } = cursor;
  const isCall = cursor.atSymbol('(', 1);
  if (token.kind === 'word' && reservedWords.has(token.upper)) {
    if (!isCall || !operatorFunctions.has(token.upper)) throw keywordAsValue(cursor);
  }
  const name = takeName(cursor);
  if (isCall) return call(cursor, name);
  return cursor.node<Field>(token.start, { kind: 'field', path: [name] });
}

function keywordAsValue(cursor: Cursor): Error {
  const { token } = cursor;
  if (cursor.atWords('SELECT') || cursor.atWords('WITH'))
    return cursor.error(
      `Expected ${whatValue}, found a query.`,
      token,
      'A query inside an expression stands in brackets.',
    );
  return cursor.error(
    `Expected ${whatValue}, found the keyword \`${token.text}\`.`,
    token,
    likelyNames.has(wordOf(token) ?? '')
      ? `A column with this name stands in backticks: \`${token.text}\`.`
      : null,
  );
}

/** A query, an expression or a tuple in brackets. */
function brackets(cursor: Cursor): Expression {
  const { start } = cursor.token;
  if (atBracketedQuery(cursor)) {
    const query = cursor.bracketed(() => cursor.grammar.query(cursor));
    return cursor.node<Subquery>(start, { kind: 'subquery', query });
  }
  cursor.advance();
  if (cursor.atSymbol(')'))
    throw cursor.error(
      'These brackets are empty.',
      { start, end: cursor.token.end },
      'Write tuple() for an empty tuple.',
    );
  const items = [item(cursor)];
  let isTuple = false;
  while (cursor.takeSymbol(',')) {
    isTuple = true;
    if (cursor.atSymbol(')')) break;
    items.push(item(cursor));
  }
  cursor.expectSymbol(')', '`,` or `)`');
  const [only] = items;
  if (!isTuple && only !== undefined) return only;
  return cursor.node<Tuple>(start, { kind: 'tuple', items });
}
