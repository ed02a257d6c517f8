import type { Expression } from '../../dialect/ast.ts';
import { expressionOf, joined } from '../../dialect/build.ts';
import { notADate } from '../dates/not_a_date.ts';
import { dateValueOf, type DateValue } from './date_values.ts';
import type { FilterScalar } from './schema.ts';
import { numberOf, textOf, timeOf, type Subject } from './subject.ts';

type Value = NonNullable<FilterScalar>;

/** A value of a filter and its path in the request. */
export interface PlacedValue<Of extends FilterScalar = FilterScalar> {
  readonly value: Of;
  readonly attr: string;
}

/** Whether a subject is one of several values; null stands for no value. Numbers are compared as numbers. */
export function isOneOf(subject: Subject, placed: readonly PlacedValue[]): Expression | null {
  if (subject.kind === 'time')
    return joined(
      'or',
      placed.map(({ value, attr }) => atDate(subject, value, attr)),
    );
  const values = placed.map(({ value }) => value);
  const numbers = values.filter((value) => typeof value === 'number');
  const texts = values.filter((value) => value !== null && typeof value !== 'number').map(String);
  return joined('or', [
    texts.length === 0 ? null : among(textOf(subject), texts),
    numbers.length === 0 ? null : among(numberOf(subject), numbers),
    values.includes(null) ? expressionOf('{value} is null', { value: subject.value }) : null,
  ]);
}

/** Whether it is none of them; no value is none of them. */
export function isNoneOf(subject: Subject, values: readonly PlacedValue[]): Expression | null {
  const found = isOneOf(subject, values);
  return found && expressionOf('not {found}', { found });
}

function among(subject: Expression, values: readonly (string | number)[]): Expression {
  const [only] = values;
  return values.length === 1 && only !== undefined
    ? expressionOf('{subject} = {value}', { subject, value: { value: only } })
    : expressionOf('{subject} in {values}', { subject, values: { value: values } });
}

export type Order = '<' | '<=' | '>' | '>=';

/**
 * Whether a subject is smaller or larger than a value: as a number where the value is one or reads as one, else by its
 * text. No value is neither, and text that is no number neither smaller nor larger than a number.
 */
export function isOrdered(subject: Subject, order: Order, value: Value, attr: string): Expression {
  if (subject.kind === 'time') {
    const { moment } = dateOf(value, attr);
    return expressionOf(`{subject} ${order} {moment}`, { subject: subject.value, moment });
  }
  const number = numberIn(value);
  return number === null
    ? expressionOf(`{subject} ${order} {value}`, {
        subject: textOf(subject),
        value: { value: String(value) },
      })
    : expressionOf(`{subject} ${order} {value}`, { subject: numberOf(subject), value: { value: number } });
}

/** The number that a value is or reads as; null for others. */
export function numberIn(value: Value): number | null {
  if (typeof value === 'number') return value;
  return typeof value === 'string' && /^\s*[-+]?(\d+(\.\d*)?|\.\d+)(e[-+]?\d{1,2})?\s*$/i.test(value)
    ? Number(value)
    : null;
}

/** Whether a time lies on the day that a value names, or in the second. */
export function isAtDate(subject: Subject, value: Value, attr: string): Expression {
  const { begin, next } = dateOf(value, attr);
  return expressionOf('{subject} >= {begin} and {subject} < {next}', {
    subject: timeOf(subject),
    begin,
    next,
  });
}

export function isBeforeDate(subject: Subject, value: Value, attr: string): Expression {
  const { moment } = dateOf(value, attr);
  return expressionOf('{subject} < {moment}', { subject: timeOf(subject), moment });
}

/** After a day means on a later one. */
export function isAfterDate(subject: Subject, value: Value, attr: string): Expression {
  const { moment, next, isDay } = dateOf(value, attr);
  return isDay
    ? expressionOf('{subject} >= {next}', { subject: timeOf(subject), next })
    : expressionOf('{subject} > {moment}', { subject: timeOf(subject), moment });
}

function atDate(subject: Subject, value: FilterScalar, attr: string): Expression {
  return value === null
    ? expressionOf('{value} is null', { value: subject.value })
    : expressionOf('{subject} = {moment}', { subject: subject.value, moment: dateOf(value, attr).moment });
}

function dateOf(value: Value, attr: string): DateValue {
  const read = typeof value === 'string' ? dateValueOf(value) : null;
  if (read !== null) return read;
  throw notADate(attr);
}
