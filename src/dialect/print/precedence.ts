import type { Expression } from '../ast.ts';

/** Operator precedence, loosest first. An expression below the precedence of its context needs parentheses. */
export const precedence = {
  item: 0,
  any: 1,
  or: 2,
  and: 3,
  not: 4,
  nullish: 5,
  comparison: 6,
  sum: 7,
  product: 8,
  sign: 9,
  value: 10,
} as const;

export function precedenceOf(expression: Expression): number {
  switch (expression.kind) {
    case 'alias':
    case 'lambda':
      return precedence.item;
    case 'conditional':
      return precedence.any;
    case 'logical':
      return expression.operator === 'or' ? precedence.or : precedence.and;
    case 'unary':
      return expression.operator === 'not' ? precedence.not : precedence.sign;
    case 'nullish':
      return precedence.nullish;
    case 'comparison':
    case 'is_null':
    case 'between':
      return precedence.comparison;
    case 'arithmetic':
      return isSum(expression.operator) ? precedence.sum : precedence.product;
    default:
      return precedence.value;
  }
}

export const isSum = (operator: string): boolean => operator === '+' || operator === '-' || operator === '||';
