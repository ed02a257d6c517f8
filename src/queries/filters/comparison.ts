import type { Expression } from '../../dialect/ast.ts';
import { buildExpression, combineConditions } from '../../dialect/ast_builders.ts';
import { invalidDate } from '../dates/invalid_date.ts';
import { dateValueOf, type DateValue } from './date_values.ts';
import { QueryError } from '../query_errors.ts';
import type { FilterScalar } from './schema.ts';
import { asNumber, asString, asTime, type FilterOperand } from './operand.ts';

type Value = NonNullable<FilterScalar>;

/** A value of a filter and its path in the request. */
export interface FilterValue<Of extends FilterScalar = FilterScalar> {
  readonly value: Of;
  readonly attr: string;
}

/** Each date of a filter is a condition. */
const maxDates = 100;

/**
 * The condition that an operand equals one of several values. The value null matches operands without a value. Numbers
 * are compared as numbers.
 */
export function isOneOf(operand: FilterOperand, filterValues: readonly FilterValue[]): Expression | null {
  if (operand.kind === 'time') {
    if (filterValues.length > maxDates)
      throw new QueryError('invalid_input', `A filter on a time has at most ${maxDates} values.`, {
        attr: filterValues[maxDates]?.attr ?? null,
      });
    return combineConditions(
      'or',
      filterValues.map(({ value, attr }) => atDate(operand, value, attr)),
    );
  }
  const values = filterValues.map(({ value }) => value);
  const numbers = values.filter((value) => typeof value === 'number');
  const strings = values.filter((value) => value !== null && typeof value !== 'number').map(String);
  return combineConditions('or', [
    strings.length === 0 ? null : equalsAny(asString(operand), strings),
    numbers.length === 0 ? null : equalsAny(asNumber(operand), numbers),
    values.includes(null) ? buildExpression('{value} is null', { value: operand.value }) : null,
  ]);
}

/** The condition that an operand equals none of the values. An operand without a value does not. */
export function isNoneOf(operand: FilterOperand, values: readonly FilterValue[]): Expression | null {
  const found = isOneOf(operand, values);
  return found && buildExpression('not {found}', { found });
}

function equalsAny(operand: Expression, values: readonly (string | number)[]): Expression {
  const [only] = values;
  return values.length === 1 && only !== undefined
    ? buildExpression('{operand} = {value}', { operand, value: { value: only } })
    : buildExpression('{operand} in {values}', { operand, values: { value: values } });
}

export type Order = '<' | '<=' | '>' | '>=';

/**
 * The condition that an operand is smaller or larger than a value: as numbers if the value is one or reads as one, else
 * as strings. An operand without a value never matches; nor does a non-numeric string compared with a number.
 */
export function isOrdered(operand: FilterOperand, order: Order, value: Value, attr: string): Expression {
  if (operand.kind === 'time') {
    const { moment } = dateOf(value, attr);
    return buildExpression(`{operand} ${order} {moment}`, { operand: operand.value, moment });
  }
  const number = numberIn(value);
  return number === null
    ? buildExpression(`{operand} ${order} {value}`, {
        operand: asString(operand),
        value: { value: String(value) },
      })
    : buildExpression(`{operand} ${order} {value}`, { operand: asNumber(operand), value: { value: number } });
}

/** The number that a value is or reads as; null for others. */
export function numberIn(value: Value): number | null {
  if (typeof value === 'number') return value;
  return typeof value === 'string' && /^\s*[-+]?(\d+(\.\d*)?|\.\d+)(e[-+]?\d{1,2})?\s*$/i.test(value)
    ? Number(value)
    : null;
}

/** The condition that a time is on the day, or in the second, of a value. */
export function isAtDate(operand: FilterOperand, value: Value, attr: string): Expression {
  const { start, next } = dateOf(value, attr);
  return buildExpression('{operand} >= {start} and {operand} < {next}', {
    operand: asTime(operand),
    start,
    next,
  });
}

export function isBeforeDate(operand: FilterOperand, value: Value, attr: string): Expression {
  const { moment } = dateOf(value, attr);
  return buildExpression('{operand} < {moment}', { operand: asTime(operand), moment });
}

/** The condition that a time is after a value. After a day means on a later day. */
export function isAfterDate(operand: FilterOperand, value: Value, attr: string): Expression {
  const { moment, next, isDay } = dateOf(value, attr);
  return isDay
    ? buildExpression('{operand} >= {next}', { operand: asTime(operand), next })
    : buildExpression('{operand} > {moment}', { operand: asTime(operand), moment });
}

function atDate(operand: FilterOperand, value: FilterScalar, attr: string): Expression {
  return value === null
    ? buildExpression('{value} is null', { value: operand.value })
    : buildExpression('{operand} = {moment}', { operand: operand.value, moment: dateOf(value, attr).moment });
}

function dateOf(value: Value, attr: string): DateValue {
  const read = typeof value === 'string' ? dateValueOf(value) : null;
  if (read !== null) return read;
  throw invalidDate(attr);
}
