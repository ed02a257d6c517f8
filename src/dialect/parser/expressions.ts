import type {
  Arithmetic,
  ArithmeticOperator,
  Between,
  Comparison,
  Conditional,
  Expression,
  IsNull,
  Logical,
  Nullish,
  Unary,
} from '../ast.ts';
import type { Cursor } from './cursor.ts';
import { type ComparisonStart, acceptComparison, acceptProduct, acceptSum } from './operators.ts';
import { postfixes } from './postfix.ts';
import { primary } from './primary.ts';

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
