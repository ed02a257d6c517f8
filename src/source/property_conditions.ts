import type { SettingParameters } from './setting_parameters.ts';
import { isNumeric, type JsonProperty } from '../sql/json_property.ts';
import type { FilterScalar, PropertyFilter, PropertyOperator } from './row_selection.ts';

/** Builds a condition on a property for one value of its filter. It is null or false where it does not hold. */
type Condition = (property: JsonProperty, value: string, parameters: SettingParameters) => string;

const compare =
  (operator: '<' | '<=' | '>' | '>='): Condition =>
  ({ text, numeric }, value, parameters) =>
    isNumeric(value)
      ? `${numeric} ${operator} ${parameters.text(value)}::numeric`
      : `${text} collate "C" ${operator} ${parameters.text(value)}`;

/** A date means the whole day in UTC. */
const endOfDay = (value: string, parameters: SettingParameters): string =>
  `${parameters.timestamp(value)}${isDate(value) ? ` + interval '1 day'` : ''}`;
const isDate = (value: string): boolean => !value.includes(':');

const conditions: Readonly<Partial<Record<PropertyOperator, Condition>>> = {
  icontains: ({ text }, value, parameters) => `${text} ilike ${parameters.text(`%${value}%`)}`,
  regex: ({ text }, value, parameters) => `${text} ~ ${parameters.text(value)}`,
  gt: compare('>'),
  gte: compare('>='),
  min: compare('>='),
  lt: compare('<'),
  lte: compare('<='),
  max: compare('<='),
  is_date_exact: ({ timestamp }, value, parameters) =>
    isDate(value)
      ? `${timestamp} >= ${parameters.timestamp(value)} and ${timestamp} < ${endOfDay(value, parameters)}`
      : `${timestamp} = ${parameters.timestamp(value)}`,
  is_date_before: ({ timestamp }, value, parameters) => `${timestamp} < ${parameters.timestamp(value)}`,
  is_date_after: ({ timestamp }, value, parameters) =>
    `${timestamp} ${isDate(value) ? '>=' : '>'} ${endOfDay(value, parameters)}`,
};

/** Negated operators, which also hold for a missing property. */
const negated: Readonly<Partial<Record<PropertyOperator, PropertyOperator>>> = {
  is_not: 'exact',
  not_in: 'exact',
  not_icontains: 'icontains',
  not_regex: 'regex',
};

/**
 * A filter as an SQL condition that is never null. With several values it holds if one of them matches, or if none
 * matches for a negated operator. An empty list always holds.
 */
export function propertyCondition(
  filter: PropertyFilter,
  property: JsonProperty,
  parameters: SettingParameters,
): string {
  const { operator } = filter;
  const values: readonly FilterScalar[] = isList(filter.value) ? filter.value : [filter.value];
  if (operator === 'is_set') return `${property.text} is not null`;
  if (operator === 'is_not_set') return `${property.text} is null`;
  if (values.length === 0) return 'true';
  if (operator === 'between' || operator === 'not_between')
    return inRange(operator === 'between', property, values.map(textOf), parameters);
  const positive = negated[operator] ?? operator;
  const condition = conditions[positive];
  const holds = condition
    ? values.map((value) => `(${condition(property, textOf(value), parameters)})`).join(' or ')
    : equalToAny(property, values, parameters);
  return `((${holds}) is ${positive === operator ? '' : 'not '}true)`;
}

const isList = (value: PropertyFilter['value']): value is readonly FilterScalar[] => Array.isArray(value);
const textOf = (value: FilterScalar): string => String(value);

/** The bounds are inclusive. A missing property is neither inside nor outside. */
function inRange(
  inside: boolean,
  property: JsonProperty,
  [low = '', high = '']: readonly string[],
  parameters: SettingParameters,
): string {
  const [lower, upper]: [Condition, Condition] = inside
    ? [compare('>='), compare('<=')]
    : [compare('<'), compare('>')];
  const join = inside ? 'and' : 'or';
  return `((${lower(property, low, parameters)} ${join} ${upper(property, high, parameters)}) is true)`;
}

/**
 * Strings and booleans are compared as text. Numbers are compared by value if the property's text is a number. A
 * string that is a number also equals a property that is a number, by value. Null matches a missing property.
 */
function equalToAny(
  { text, isNumber, numeric }: JsonProperty,
  values: readonly FilterScalar[],
  parameters: SettingParameters,
): string {
  const numbers = values.filter((value) => typeof value === 'number').map(textOf);
  const texts = values.filter((value) => value !== null && typeof value !== 'number').map(textOf);
  const numericTexts = texts.filter(isNumeric);
  return [
    ...(values.includes(null) ? [`${text} is null`] : []),
    ...(texts.length > 0 ? [`${text} = any (${parameters.texts(texts)})`] : []),
    ...(numbers.length > 0 ? [`${numeric} = any (${parameters.numerics(numbers)})`] : []),
    ...(numericTexts.length > 0
      ? [`(${isNumber} and ${numeric} = any (${parameters.numerics(numericTexts)}))`]
      : []),
  ].join(' or ');
}
