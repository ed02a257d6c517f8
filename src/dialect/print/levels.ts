import type { Expression } from '../ast.ts';

/** How tightly an expression holds together: one that is looser than its place needs brackets. */
export const level = {
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

export function levelOf(expression: Expression): number {
  switch (expression.kind) {
    case 'alias':
    case 'lambda':
      return level.item;
    case 'conditional':
      return level.any;
    case 'logical':
      return expression.operator === 'or' ? level.or : level.and;
    case 'unary':
      return expression.operator === 'not' ? level.not : level.sign;
    case 'nullish':
      return level.nullish;
    case 'comparison':
    case 'is_null':
    case 'between':
      return level.comparison;
    case 'arithmetic':
      return isSum(expression.operator) ? level.sum : level.product;
    default:
      return level.value;
  }
}

export const isSum = (operator: string): boolean => operator === '+' || operator === '-' || operator === '||';
