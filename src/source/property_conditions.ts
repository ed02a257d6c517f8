import type { SettingParameters } from './setting_parameters.ts';
import { isNumeric, type JsonProperty } from '../sql/json_property.ts';
import type { FilterScalar, PropertyFilter, PropertyOperator } from './row_selection.ts';

/** A condition on a property for one value of its filter, as SQL that is null or false where it does not hold. */
type Condition = (property: JsonProperty, value: string, bind: SettingParameters) => string;

const compare =
  (operator: '<' | '<=' | '>' | '>='): Condition =>
  ({ text, numeric }, value, bind) =>
    isNumeric(value)
      ? `${numeric} ${operator} ${bind.text(value)}::numeric`
      : `${text} collate "C" ${operator} ${bind.text(value)}`;

/** A date stands for all of its day in UTC. */
const endOf = (value: string, bind: SettingParameters): string =>
  `${bind.timestamp(value)}${isDate(value) ? ` + interval '1 day'` : ''}`;
const isDate = (value: string): boolean => !value.includes(':');

const conditions: Readonly<Partial<Record<PropertyOperator, Condition>>> = {
  icontains: ({ text }, value, bind) => `${text} ilike ${bind.text(`%${value}%`)}`,
  regex: ({ text }, value, bind) => `${text} ~ ${bind.text(value)}`,
  gt: compare('>'),
  gte: compare('>='),
  min: compare('>='),
  lt: compare('<'),
  lte: compare('<='),
  max: compare('<='),
  is_date_exact: ({ timestamp }, value, bind) =>
    isDate(value)
      ? `${timestamp} >= ${bind.timestamp(value)} and ${timestamp} < ${endOf(value, bind)}`
      : `${timestamp} = ${bind.timestamp(value)}`,
  is_date_before: ({ timestamp }, value, bind) => `${timestamp} < ${bind.timestamp(value)}`,
  is_date_after: ({ timestamp }, value, bind) =>
    `${timestamp} ${isDate(value) ? '>=' : '>'} ${endOf(value, bind)}`,
};

/** Operators that hold where another one does not, a missing property included. */
const negated: Readonly<Partial<Record<PropertyOperator, PropertyOperator>>> = {
  is_not: 'exact',
  not_in: 'exact',
  not_icontains: 'icontains',
  not_regex: 'regex',
};

/**
 * A filter as an SQL condition that is never null. A list of values holds where one of them does, with a negative
 * operator where none of them does; an empty list always.
 */
export function propertyCondition(
  filter: PropertyFilter,
  property: JsonProperty,
  bind: SettingParameters,
): string {
  const { operator } = filter;
  const values: readonly FilterScalar[] = isList(filter.value) ? filter.value : [filter.value];
  if (operator === 'is_set') return `${property.text} is not null`;
  if (operator === 'is_not_set') return `${property.text} is null`;
  if (values.length === 0) return 'true';
  if (operator === 'between' || operator === 'not_between')
    return inRange(operator === 'between', property, values.map(textOf), bind);
  const positive = negated[operator] ?? operator;
  const condition = conditions[positive];
  const holds = condition
    ? values.map((value) => `(${condition(property, textOf(value), bind)})`).join(' or ')
    : equalToAny(property, values, bind);
  return `((${holds}) is ${positive === operator ? '' : 'not '}true)`;
}

const isList = (value: PropertyFilter['value']): value is readonly FilterScalar[] => Array.isArray(value);
const textOf = (value: FilterScalar): string => String(value);

/** Both bounds are included; a missing property is neither inside nor outside. */
function inRange(
  inside: boolean,
  property: JsonProperty,
  [low = '', high = '']: readonly string[],
  bind: SettingParameters,
): string {
  const [least, most]: [Condition, Condition] = inside
    ? [compare('>='), compare('<=')]
    : [compare('<'), compare('>')];
  const join = inside ? 'and' : 'or';
  return `((${least(property, low, bind)} ${join} ${most(property, high, bind)}) is true)`;
}

/**
 * Texts and booleans are equal by their text, numbers by their value where the property's text is one; a text that is
 * a number equals a property that is a number by its value. Null stands for a missing property.
 */
function equalToAny(
  { text, isNumber, numeric }: JsonProperty,
  values: readonly FilterScalar[],
  bind: SettingParameters,
): string {
  const numbers = values.filter((value) => typeof value === 'number').map(textOf);
  const texts = values.filter((value) => value !== null && typeof value !== 'number').map(textOf);
  const numericTexts = texts.filter(isNumeric);
  return [
    ...(values.includes(null) ? [`${text} is null`] : []),
    ...(texts.length > 0 ? [`${text} = any (${bind.texts(texts)})`] : []),
    ...(numbers.length > 0 ? [`${numeric} = any (${bind.numerics(numbers)})`] : []),
    ...(numericTexts.length > 0
      ? [`(${isNumber} and ${numeric} = any (${bind.numerics(numericTexts)}))`]
      : []),
  ].join(' or ');
}
