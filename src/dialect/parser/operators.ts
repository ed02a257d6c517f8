import type { ArithmeticOperator, ComparisonOperator } from '../ast.ts';
import type { Cursor } from './cursor.ts';
import { keywordOf } from './cursor.ts';

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
export type ComparisonStart = ComparisonOperator | 'is' | 'between' | 'not between';

/** Reads a comparison operator, if one comes next. */
export function acceptComparison(cursor: Cursor): ComparisonStart | undefined {
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

export const acceptSum = (cursor: Cursor): ArithmeticOperator | undefined => acceptOneOf(cursor, sums);
export const acceptProduct = (cursor: Cursor): ArithmeticOperator | undefined =>
  acceptOneOf(cursor, products);

const acceptOneOf = (
  cursor: Cursor,
  operators: readonly ArithmeticOperator[],
): ArithmeticOperator | undefined => operators.find((operator) => cursor.acceptSymbol(operator));
