import type { Expression } from '../../dialect/ast.ts';
import { expressionOf, joined } from '../../dialect/build.ts';
import { regularExpressionFault } from '../../dialect/compile/regular_expressions.ts';
import { QueryInvalid } from '../query_errors.ts';
import {
  isAfterDate,
  isAtDate,
  isBeforeDate,
  isNoneOf,
  isOneOf,
  isOrdered,
  numberIn,
  type Order,
  type PlacedValue,
} from './comparison.ts';
import type { FilterOperator, FilterScalar, PropertyFilter } from './schema.ts';
import { textOf, type Subject } from './subject.ts';

type Value = NonNullable<FilterScalar>;
type Test = (subject: Subject, value: Value, attr: string) => Expression;

/** Those of several values of which any has to hold. */
const anyValueTests: Readonly<Partial<Record<FilterOperator, Test>>> = {
  icontains: (subject, value) => matching(subject, 'ilike', `%${String(value)}%`),
  regex: (subject, value, attr) => matching(subject, '=~', patternIn(value, attr)),
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

/** Those of several values of which all have to hold; they hold where there is no value to compare. */
const allValuesTests: Readonly<Partial<Record<FilterOperator, Test>>> = {
  not_icontains: (subject, value) => matching(subject, 'not ilike', `%${String(value)}%`),
  not_regex: (subject, value, attr) => matching(subject, '!~', patternIn(value, attr)),
};

/**
 * What an operator and its value ask of a subject; null for a filter that somebody has not finished.
 * @param attr path of the filter
 * @throws QueryInvalid for values that an operator cannot compare with
 */
export function operatorCondition(
  subject: Subject,
  { operator, value }: Pick<PropertyFilter, 'operator' | 'value'>,
  attr: string,
): Expression | null {
  const wanted = operator ?? 'exact';
  if (wanted === 'is_set') return expressionOf('{value} is not null', { value: subject.value });
  if (wanted === 'is_not_set') return expressionOf('{value} is null', { value: subject.value });
  const place = `${attr}__value`;
  const values: readonly PlacedValue[] = Array.isArray(value)
    ? value.map((one, index) => ({ value: one, attr: `${place}__${index}` }))
    : [{ value: value ?? null, attr: place }];
  const known = values.filter((one): one is PlacedValue<Value> => one.value !== null);
  if (known.length === 0) return null;
  switch (wanted) {
    case 'exact':
    case 'in':
      return isOneOf(subject, values);
    case 'is_not':
    case 'not_in':
      return isNoneOf(subject, values);
    case 'between':
    case 'not_between':
      return within(subject, known, wanted === 'between', place);
    case 'is_cleaned_path_exact':
      throw new QueryInvalid('not_supported', 'Rules for cleaning paths are not stored; use regex.', {
        attr: `${attr}__operator`,
      });
    default: {
      const [test, joins] =
        allValuesTests[wanted] === undefined
          ? [anyValueTests[wanted], 'or' as const]
          : [allValuesTests[wanted], 'and' as const];
      return joined(
        joins,
        known.map((one) => test?.(subject, one.value, one.attr) ?? null),
      );
    }
  }
}

function ordered(order: Order): Test {
  return (subject, value, attr) => isOrdered(subject, order, value, attr);
}

function within(
  subject: Subject,
  bounds: readonly PlacedValue<Value>[],
  isInside: boolean,
  attr: string,
): Expression | null {
  const [low, high, ...more] = bounds;
  const isRange = low !== undefined && high !== undefined && more.length === 0;
  if (
    !isRange ||
    (subject.kind !== 'time' && (numberIn(low.value) === null || numberIn(high.value) === null))
  )
    throw new QueryInvalid('invalid_input', 'This field must be a list of two numbers.', { attr });
  return isInside
    ? joined('and', [
        isOrdered(subject, '>=', low.value, low.attr),
        isOrdered(subject, '<=', high.value, high.attr),
      ])
    : joined('or', [
        isOrdered(subject, '<', low.value, low.attr),
        isOrdered(subject, '>', high.value, high.attr),
      ]);
}

function matching(
  subject: Subject,
  operator: 'ilike' | 'not ilike' | '=~' | '!~',
  pattern: string,
): Expression {
  return expressionOf(`{subject} ${operator} {pattern}`, {
    subject: textOf(subject),
    pattern: { value: pattern },
  });
}

function patternIn(value: Value, attr: string): string {
  const pattern = String(value);
  const fault = regularExpressionFault(pattern);
  if (fault !== null) throw new QueryInvalid('invalid_input', fault.words, { attr });
  return pattern;
}
