import type { ArithmeticOperator, ComparisonOperator } from '../ast.ts';
import type { Cursor } from './cursor.ts';
import { wordOf } from './cursor.ts';

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

/** What joins two values at the level of comparisons; IS and BETWEEN are read by rules of their own. */
export type ComparisonStart = ComparisonOperator | 'is' | 'between' | 'not between';

/** Reads the operator of a comparison, if one comes next. */
export function takeComparison(cursor: Cursor): ComparisonStart | undefined {
  const { token } = cursor;
  if (token.kind === 'symbol') {
    const operator = Object.hasOwn(comparisonSymbols, token.text) ? comparisonSymbols[token.text] : undefined;
    if (operator !== undefined) cursor.advance();
    return operator;
  }
  if (cursor.takeWords('IS')) return 'is';
  if (cursor.takeWords('GLOBAL', 'IN')) return 'global in';
  if (cursor.takeWords('GLOBAL', 'NOT', 'IN')) return 'global not in';
  const not = cursor.atWords('NOT') && negatable(wordOf(cursor.peek(1)));
  if (not) cursor.advance();
  if (cursor.takeWords('BETWEEN')) return not ? 'not between' : 'between';
  if (cursor.takeWords('LIKE')) return not ? 'not like' : 'like';
  if (cursor.takeWords('ILIKE')) return not ? 'not ilike' : 'ilike';
  if (cursor.takeWords('IN', 'COHORT')) return not ? 'not in cohort' : 'in cohort';
  if (cursor.takeWords('IN')) return not ? 'not in' : 'in';
  return undefined;
}

const negatable = (word: string | undefined): boolean =>
  word === 'IN' || word === 'LIKE' || word === 'ILIKE' || word === 'BETWEEN';

const sums: readonly ArithmeticOperator[] = ['+', '-', '||'];
const products: readonly ArithmeticOperator[] = ['*', '/', '%'];

export const takeSum = (cursor: Cursor): ArithmeticOperator | undefined => takeOneOf(cursor, sums);
export const takeProduct = (cursor: Cursor): ArithmeticOperator | undefined => takeOneOf(cursor, products);

const takeOneOf = (
  cursor: Cursor,
  operators: readonly ArithmeticOperator[],
): ArithmeticOperator | undefined => operators.find((operator) => cursor.takeSymbol(operator));
