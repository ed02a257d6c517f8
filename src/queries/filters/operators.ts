import type { Expression } from '../../dialect/ast.ts';
import { buildExpression, combineConditions } from '../../dialect/ast_builders.ts';
import { regularExpressionError } from '../../dialect/compile/regular_expressions.ts';
import { QueryError } from '../query_errors.ts';
import {
  isAfterDate,
  isAtDate,
  isBeforeDate,
  isNoneOf,
  isOneOf,
  isOrdered,
  numberIn,
  type Order,
  type FilterValue,
} from './comparison.ts';
import type { FilterOperator, FilterScalar, PropertyFilter } from './schema.ts';
import { asString, type FilterOperand } from './operand.ts';

type Value = NonNullable<FilterScalar>;
type Comparison = (operand: FilterOperand, value: Value, attr: string) => Expression;

/** Comparisons of which one must match if the filter has several values. */
const anyValueComparisons: Readonly<Partial<Record<FilterOperator, Comparison>>> = {
  icontains: (operand, value) => matching(operand, 'ilike', `%${String(value)}%`),
  regex: (operand, value, attr) => matching(operand, '=~', patternIn(value, attr)),
  gt: ordered('>'),
  gte: ordered('>='),
  lt: ordered('<'),
  lte: ordered('<='),
  min: ordered('>='),
  max: ordered('<='),
  is_date_exact: isAtDate,
  is_date_before: isBeforeDate,
  is_date_after: isAfterDate,
};

/** Comparisons that must match every value of the filter. They also match rows without a value. */
const allValuesComparisons: Readonly<Partial<Record<FilterOperator, Comparison>>> = {
  not_icontains: (operand, value) => matching(operand, 'not ilike', `%${String(value)}%`),
  not_regex: (operand, value, attr) => matching(operand, '!~', patternIn(value, attr)),
};

/**
 * The condition of an operator and its value on an operand; null for an incomplete filter.
 * @param attr path of the filter
 * @throws QueryError for values that the operator cannot compare
 */
export function operatorCondition(
  operand: FilterOperand,
  { operator, value }: Pick<PropertyFilter, 'operator' | 'value'>,
  attr: string,
): Expression | null {
  const name = operator ?? 'exact';
  if (name === 'is_set') return buildExpression('{value} is not null', { value: operand.value });
  if (name === 'is_not_set') return buildExpression('{value} is null', { value: operand.value });
  const path = `${attr}__value`;
  const values: readonly FilterValue[] = Array.isArray(value)
    ? value.map((one, index) => ({ value: one, attr: `${path}__${index}` }))
    : [{ value: value ?? null, attr: path }];
  const known = values.filter((one): one is FilterValue<Value> => one.value !== null);
  if (known.length === 0) return null;
  switch (name) {
    case 'exact':
    case 'in':
      return isOneOf(operand, values);
    case 'is_not':
    case 'not_in':
      return isNoneOf(operand, values);
    case 'between':
    case 'not_between':
      return within(operand, known, name === 'between', path);
    case 'is_cleaned_path_exact':
      throw new QueryError('not_supported', 'Path cleaning rules are not stored. Use the operator regex.', {
        attr: `${attr}__operator`,
      });
    default: {
      const [compare, joins] =
        allValuesComparisons[name] === undefined
          ? [anyValueComparisons[name], 'or' as const]
          : [allValuesComparisons[name], 'and' as const];
      return combineConditions(
        joins,
        known.map((one) => compare?.(operand, one.value, one.attr) ?? null),
      );
    }
  }
}

function ordered(order: Order): Comparison {
  return (operand, value, attr) => isOrdered(operand, order, value, attr);
}

function within(
  operand: FilterOperand,
  bounds: readonly FilterValue<Value>[],
  isInside: boolean,
  attr: string,
): Expression | null {
  const [low, high, ...more] = bounds;
  const isRange = low !== undefined && high !== undefined && more.length === 0;
  if (
    !isRange ||
    (operand.kind !== 'time' && (numberIn(low.value) === null || numberIn(high.value) === null))
  )
    throw new QueryError('invalid_input', 'This field must be a list of two numbers.', { attr });
  return isInside
    ? combineConditions('and', [
        isOrdered(operand, '>=', low.value, low.attr),
        isOrdered(operand, '<=', high.value, high.attr),
      ])
    : combineConditions('or', [
        isOrdered(operand, '<', low.value, low.attr),
        isOrdered(operand, '>', high.value, high.attr),
      ]);
}

function matching(
  operand: FilterOperand,
  operator: 'ilike' | 'not ilike' | '=~' | '!~',
  pattern: string,
): Expression {
  return buildExpression(`{operand} ${operator} {pattern}`, {
    operand: asString(operand),
    pattern: { value: pattern },
  });
}

function patternIn(value: Value, attr: string): string {
  const pattern = String(value);
  const problem = regularExpressionError(pattern);
  if (problem !== null) throw new QueryError('invalid_input', problem.message, { attr });
  return pattern;
}
