import type {
  Arithmetic,
  ArithmeticOperator,
  Between,
  Cast,
  Comparison,
  ComparisonOperator,
  Conditional,
  Element,
  Expression,
  Field,
  Index,
  IsNull,
  Logical,
  Member,
  Nullish,
  NumberLiteral,
  Slice,
  Subquery,
  Tuple,
  Unary,
} from '../ast.ts';
import { commonNameKeywords, operatorFunctions, reservedWords } from '../lexer.ts';
import { call, lambda, peekLambda } from './calls.ts';
import { type Cursor, keywordOf } from './cursor.ts';
import { peekParenthesizedQuery } from './from.ts';
import { caseExpression, cast, columns, extract, interval, trim } from './keyword_expressions.ts';
import {
  array,
  braces,
  keywordLiteral,
  numberLiteral,
  stringLiteral,
  template,
  timeLiteral,
} from './literals.ts';
import { anyName, item, readName, star, typeName } from './names.ts';

const comparisonSymbols: Readonly<Record<string, ComparisonOperator>> = {
  '=': '=',
  '==': '=',
  '!=': '!=',
  '<>': '!=',
  '<': '<',
  '<=': '<=',
  '>': '>',
  '>=': '>=',
  '=~': '=~',
  '~': '=~',
  '!~': '!~',
  '=~*': '=~*',
  '~*': '=~*',
  '!~*': '!~*',
};

/** Operators of the comparison level. IS and BETWEEN have separate rules. */
type ComparisonStart = ComparisonOperator | 'is' | 'between' | 'not between';

/** Reads a comparison operator, if one comes next. */
function acceptComparison(cursor: Cursor): ComparisonStart | undefined {
  const { token } = cursor;
  if (token.kind === 'symbol') {
    const operator = Object.hasOwn(comparisonSymbols, token.text) ? comparisonSymbols[token.text] : undefined;
    if (operator !== undefined) cursor.advance();
    return operator;
  }
  if (cursor.acceptKeywords('IS')) return 'is';
  if (cursor.acceptKeywords('GLOBAL', 'IN')) return 'global in';
  if (cursor.acceptKeywords('GLOBAL', 'NOT', 'IN')) return 'global not in';
  const not = cursor.peekKeywords('NOT') && negatable(keywordOf(cursor.peek(1)));
  if (not) cursor.advance();
  if (cursor.acceptKeywords('BETWEEN')) return not ? 'not between' : 'between';
  if (cursor.acceptKeywords('LIKE')) return not ? 'not like' : 'like';
  if (cursor.acceptKeywords('ILIKE')) return not ? 'not ilike' : 'ilike';
  if (cursor.acceptKeywords('IN', 'COHORT')) return not ? 'not in cohort' : 'in cohort';
  if (cursor.acceptKeywords('IN')) return not ? 'not in' : 'in';
  return undefined;
}

const negatable = (word: string | undefined): boolean =>
  word === 'IN' || word === 'LIKE' || word === 'ILIKE' || word === 'BETWEEN';

const sums: readonly ArithmeticOperator[] = ['+', '-', '||'];
const products: readonly ArithmeticOperator[] = ['*', '/', '%'];

const acceptSum = (cursor: Cursor): ArithmeticOperator | undefined => acceptOneOf(cursor, sums);
const acceptProduct = (cursor: Cursor): ArithmeticOperator | undefined => acceptOneOf(cursor, products);

const acceptOneOf = (
  cursor: Cursor,
  operators: readonly ArithmeticOperator[],
): ArithmeticOperator | undefined => operators.find((operator) => cursor.acceptSymbol(operator));

const expectedProperty = 'a property name after the dot';

/** Maximum number of names in a path; no table has more. */
const maxPathLength = 64;

/** Applies any number of postfixes: `.name`, `.1`, `.*`, `[1]`, `[1:2]`, `?.name` and `::type`. */
function postfixes(cursor: Cursor, value: Expression): Expression {
  let object = value;
  for (;;) {
    const next = postfix(cursor, object);
    if (next === undefined) return object;
    object = next;
  }
}

function postfix(cursor: Cursor, object: Expression): Expression | undefined {
  if (cursor.acceptSymbol('.')) return afterDot(cursor, object);
  if (cursor.acceptSymbol('?.')) {
    if (cursor.acceptSymbol('[')) return indexOrSlice(cursor, object, true);
    return cursor.node<Member>(object.start, {
      kind: 'member',
      object,
      name: anyName(cursor, expectedProperty),
      nullish: true,
    });
  }
  if (cursor.acceptSymbol('[')) return indexOrSlice(cursor, object, false);
  if (cursor.acceptSymbol('::'))
    return cursor.node<Cast>(object.start, {
      kind: 'cast',
      operand: object,
      type: typeName(cursor),
      safe: false,
    });
  return undefined;
}

function afterDot(cursor: Cursor, object: Expression): Expression {
  if (cursor.peekKind('number')) {
    const position: NumberLiteral = numberLiteral(cursor);
    return cursor.node<Element>(object.start, { kind: 'element', object, position });
  }
  if (cursor.peekSymbol('*') && object.kind === 'field') return star(cursor, object.start, object.path);
  const name = anyName(cursor, expectedProperty);
  if (cursor.peekSymbol('('))
    throw cursor.error(
      'A function name cannot contain a dot.',
      { start: object.start, end: name.end },
      `Write ${name.text}(…).`,
    );
  if (object.kind === 'field' && object.path.length === maxPathLength)
    throw cursor.error(`A name may have at most ${maxPathLength} parts.`, name);
  if (object.kind === 'field')
    return cursor.node<Field>(object.start, { kind: 'field', path: [...object.path, name] });
  return cursor.node<Member>(object.start, { kind: 'member', object, name, nullish: false });
}

/** An index or a slice, after its opening bracket. */
function indexOrSlice(cursor: Cursor, object: Expression, nullish: boolean): Expression {
  const from = cursor.peekSymbol(':') ? null : cursor.grammar.expression(cursor);
  if (!nullish && cursor.acceptSymbol(':')) {
    const to = cursor.peekSymbol(']') ? null : cursor.grammar.expression(cursor);
    cursor.expectSymbol(']');
    return cursor.node<Slice>(object.start, { kind: 'slice', object, from, to });
  }
  cursor.expectSymbol(']', '`]` after this index');
  if (from === null) throw cursor.error('Missing index.');
  return cursor.node<Index>(object.start, { kind: 'index', object, index: from, nullish });
}

const expectedValue = 'an expression';

/** An operand without operators. `amountOf` reads the amount of an INTERVAL. */
function primary(cursor: Cursor, amountOf: (cursor: Cursor) => Expression): Expression {
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

// One rule for each precedence level, loosest first: `? :`, OR, AND, NOT, `??`, comparisons, `+ - ||`, `* / %`, the
// sign, and postfixes.

/** Any expression without an alias. */
export function expression(cursor: Cursor): Expression {
  return cursor.nested(() => {
    const condition = disjunction(cursor);
    if (!cursor.acceptSymbol('?')) return condition;
    const then = expression(cursor);
    cursor.expectSymbol(':', '`:` of this `? :`');
    const otherwise = expression(cursor);
    return cursor.node<Conditional>(condition.start, { kind: 'conditional', condition, then, otherwise });
  });
}

const disjunction = (cursor: Cursor): Expression => logical(cursor, 'or', conjunction);
const conjunction = (cursor: Cursor): Expression => logical(cursor, 'and', negation);

function logical(
  cursor: Cursor,
  operator: Logical['operator'],
  operand: (cursor: Cursor) => Expression,
): Expression {
  const first = operand(cursor);
  const operands = [first];
  while (cursor.acceptKeywords(operator.toUpperCase())) operands.push(operand(cursor));
  return operands.length === 1
    ? first
    : cursor.node<Logical>(first.start, { kind: 'logical', operator, operands });
}

function negation(cursor: Cursor): Expression {
  if (!cursor.peekKeywords('NOT')) return nullish(cursor);
  return cursor.nested(() => {
    const { start } = cursor.advance();
    return cursor.node<Unary>(start, { kind: 'unary', operator: 'not', operand: negation(cursor) });
  });
}

function nullish(cursor: Cursor): Expression {
  let left = comparison(cursor);
  while (cursor.acceptSymbol('??')) {
    const right = comparison(cursor);
    left = cursor.node<Nullish>(left.start, { kind: 'nullish', left, right });
  }
  return left;
}

function comparison(cursor: Cursor): Expression {
  let left = sum(cursor);
  for (;;) {
    const operator = acceptComparison(cursor);
    if (operator === undefined) return left;
    left = comparisonWith(cursor, left, operator);
  }
}

const membershipOperators: ReadonlySet<ComparisonStart> = new Set([
  'in',
  'not in',
  'global in',
  'global not in',
]);

function comparisonWith(cursor: Cursor, left: Expression, operator: ComparisonStart): Expression {
  const { start } = left;
  if (operator === 'is') return isComparison(cursor, left);
  if (operator === 'between' || operator === 'not between') {
    const low = sum(cursor);
    cursor.expectKeywords('AND');
    const high = sum(cursor);
    const negated = operator === 'not between';
    return cursor.node<Between>(start, { kind: 'between', operand: left, low, high, negated });
  }
  const right = sum(cursor);
  if (membershipOperators.has(operator) && (right.kind === 'tuple' || right.kind === 'array'))
    cursor.checkValues(right.items);
  return cursor.node<Comparison>(start, { kind: 'comparison', operator, left, right });
}

/** IS [NOT] NULL and IS [NOT] DISTINCT FROM, after IS. */
function isComparison(cursor: Cursor, operand: Expression): IsNull | Comparison {
  const { start } = operand;
  const negated = cursor.acceptKeywords('NOT');
  if (cursor.acceptKeywords('NULL')) return cursor.node<IsNull>(start, { kind: 'is_null', operand, negated });
  if (!cursor.acceptKeywords('DISTINCT'))
    throw cursor.unexpected('NULL or DISTINCT FROM', ['NULL', 'NOT', 'DISTINCT']);
  cursor.expectKeywords('FROM');
  const operator = negated ? 'is not distinct from' : 'is distinct from';
  return cursor.node<Comparison>(start, { kind: 'comparison', operator, left: operand, right: sum(cursor) });
}

const sum = (cursor: Cursor): Expression => arithmetic(cursor, acceptSum, product);
const product = (cursor: Cursor): Expression => arithmetic(cursor, acceptProduct, signed);

function arithmetic(
  cursor: Cursor,
  accept: (cursor: Cursor) => ArithmeticOperator | undefined,
  operand: (cursor: Cursor) => Expression,
): Expression {
  let left = operand(cursor);
  for (;;) {
    const operator = accept(cursor);
    if (operator === undefined) return left;
    const right = operand(cursor);
    left = cursor.node<Arithmetic>(left.start, { kind: 'arithmetic', operator, left, right });
  }
}

/** A value with its sign. A plus before a number is ignored, and NOT may precede any value. */
function signed(cursor: Cursor): Expression {
  if (cursor.peekSymbol('-'))
    return cursor.nested(() => {
      const { start } = cursor.advance();
      return cursor.node<Unary>(start, { kind: 'unary', operator: '-', operand: signed(cursor) });
    });
  if (cursor.peekKeywords('NOT')) return negation(cursor);
  if (cursor.peekSymbol('+') && cursor.peek(1).kind === 'number') cursor.advance();
  return postfixes(cursor, primary(cursor, sum));
}
