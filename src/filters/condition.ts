import { DateTime } from 'luxon';
import type { Expression } from '@exportd/dialect/ast';
import { buildExpression, buildTimeLiteral, combineConditions } from '@exportd/dialect/ast_builders';
import { DialectError } from '@exportd/dialect/query_text';
import { parseExpression } from '@exportd/dialect/parser/queries';
import { regularExpressionError } from '@exportd/dialect/regular_expressions/translate';
import {
  asNumber,
  asString,
  asTime,
  FilterError,
  type FilterOperand,
  type FilterTarget,
  isMissing,
  isPresent,
  operandOf,
  personOf,
} from './operand.ts';
import {
  cohortTypes,
  type FilterOperator,
  type FilterScalar,
  type PropertyFilter,
  type PropertyFilters,
  type PropertyGroup,
} from './schema.ts';

/** The error for a field that must be a date. */
export const invalidDateMessage =
  'This is not a valid date. Use ISO 8601, such as 2026-11-21, or a relative date, such as -7d or mStart.';

const isoLike = /^\d{4}/;
const hasOffset = /[T ].*(z|[+-]\d{2}(:?\d{2})?)$/i;
/** No time zone is more than 14 hours away from UTC. */
const noOffset = /[T ].*[+-](1[5-9]|[2-9]\d|\d{2}:?[6-9]\d)(:?\d{2})?$/i;

/** A calendar date, with or without a time. */
export interface AbsoluteDate {
  /** The local time in milliseconds as if it were UTC; the actual time if the text has an offset. */
  readonly local: number;
  /** Microseconds after `local`, 0 to 999. */
  readonly microseconds: number;
  readonly hasOffset: boolean;
  /** Whether it is a date without a time. */
  readonly isDay: boolean;
}

/**
 * Parses ISO 8601, also with a space instead of the T and with months and days without leading zeros; null for anything
 * else.
 */
export function parseAbsoluteDate(text: string): AbsoluteDate | null {
  const trimmed = text.trim();
  if (!isoLike.test(trimmed) || noOffset.test(trimmed)) return null;
  const iso = DateTime.fromISO(trimmed.replace(' ', 'T'), { zone: 'utc' });
  const time = iso.isValid ? iso : DateTime.fromFormat(trimmed, 'yyyy-M-d', { zone: 'utc' });
  if (!time.isValid || time.year < 1000 || time.year > 9999) return null;
  return {
    local: time.toMillis(),
    microseconds: microsecondsOf(trimmed),
    hasOffset: hasOffset.test(trimmed),
    isDay: !/[T ]/i.test(trimmed),
  };
}

/** The fourth to sixth digit of a fraction of a second. Luxon keeps three, PostgreSQL six. */
const microsecondsOf = (text: string): number =>
  Number((/[.,]\d{3}(\d{1,3})/.exec(text)?.[1] ?? '0').padEnd(3, '0'));

/** The last digits of a fraction of a second: empty, or three digits. */
export const microsecondDigits = ({ microseconds }: Pick<AbsoluteDate, 'microseconds'>): string =>
  microseconds === 0 ? '' : String(microseconds).padStart(3, '0');

export type RelativeUnit = 'second' | 'minute' | 'hour' | 'day' | 'week' | 'month' | 'quarter' | 'year';

/** A time some units ago, or the first or last moment of the unit that contains it. */
export interface RelativeDate {
  readonly amount: number;
  readonly unit: RelativeUnit;
  readonly position: 'start' | 'end' | null;
}

const units: Readonly<Record<string, RelativeUnit>> = {
  s: 'second',
  M: 'minute',
  h: 'hour',
  d: 'day',
  w: 'week',
  m: 'month',
  q: 'quarter',
  y: 'year',
};

const relative = /^-?(\d{1,7})?([hdwmMsqy])(Start|End)?$/;

/**
 * Parses relative dates such as `-7d`, `dStart` and `-1mEnd`; null for anything else. The sign is ignored: all relative
 * dates are in the past.
 */
export function parseRelativeDate(text: string): RelativeDate | null {
  const [, amount, letter = '', position] = relative.exec(text.trim()) ?? [];
  const unit = units[letter];
  if (unit === undefined || (amount === undefined && position === undefined)) return null;
  return {
    amount: Number(amount ?? 0),
    unit,
    position: position === 'Start' ? 'start' : position === 'End' ? 'end' : null,
  };
}

/** The condition of property filters on a row; null if there is none. @throws FilterError */
export function conditionOfFilters(
  filters: PropertyFilters | null | undefined,
  target: FilterTarget,
): Expression | null {
  if (filters === null || filters === undefined) return null;
  if ('type' in filters) return groupCondition(filters, target, target.attr);
  return combineConditions(
    'and',
    filters.map((filter, index) => filterCondition(filter, target, `${target.attr}__${index}`)),
  );
}

/** An incomplete filter matches every row, and so does an OR group that contains one. */
function groupCondition(
  { type, values }: PropertyGroup,
  target: FilterTarget,
  attr: string,
): Expression | null {
  const conditions = values.map((item, index) => {
    const path = `${attr}__values__${index}`;
    return 'values' in item ? groupCondition(item, target, path) : filterCondition(item, target, path);
  });
  if (type === 'AND') return combineConditions('and', conditions);
  return conditions.includes(null) ? null : combineConditions('or', conditions);
}

/**
 * The condition of one filter on a row; null if there is none.
 * @param attr path of the filter
 * @throws FilterError
 */
export function filterCondition(
  filter: PropertyFilter,
  target: Omit<FilterTarget, 'attr'>,
  attr: string,
): Expression | null {
  const { type, key } = filter;
  if (isOfCohort(filter)) return cohortCondition(filter, target, attr);
  if (type === 'empty' || key === null || key === undefined || key === '') return null;
  if (type === 'hogql' && target.bindings !== undefined)
    throw new FilterError(
      'not_supported',
      'A filter of type hogql has no key to bind in {filters(…)}. Write its condition into the query.',
      `${attr}__type`,
    );
  if (type === 'hogql') return parseKey(String(key), `${attr}__key`);
  const operand = operandOf(filter, target, attr);
  if (operand === null) return null;
  const condition = operatorCondition(operand, filter, attr);
  return condition && combineConditions('and', [operand.restriction ?? null, condition]);
}

/** Whether a filter is about cohorts of persons. */
export const isOfCohort = ({ type }: PropertyFilter): boolean =>
  cohortTypes.some((cohortType) => cohortType === type);

/** More cohorts in one filter are a mistake; each is a condition. */
const maxCohorts = 100;

/** The cohorts that a filter names, each by its id or its name, with its path. @throws FilterError */
export function cohortsOf(
  { key, value }: PropertyFilter,
  attr: string,
): readonly { readonly cohort: string | number; readonly attr: string }[] {
  if (key && key !== 'id')
    throw new FilterError('invalid_input', 'The key of a filter on a cohort is id.', `${attr}__key`);
  const path = `${attr}__value`;
  const given = Array.isArray(value)
    ? value.map((one, index) => ({ value: one, attr: `${path}__${index}` }))
    : [{ value: value ?? null, attr: path }];
  const known = given.filter((one) => one.value !== null);
  if (known.length > maxCohorts)
    throw new FilterError('invalid_input', `A filter can name at most ${maxCohorts} cohorts.`, path);
  return known.map((one) => ({ cohort: cohortIn(one.value, one.attr), attr: one.attr }));
}

/**
 * A cohort as the dialect names it: its id as a number, or its name. A text of digits is an id.
 * @throws FilterError for anything else
 */
export function cohortIn(value: FilterScalar, attr: string): string | number {
  const cohort = typeof value === 'string' && /^[1-9]\d{0,14}$/.test(value) ? Number(value) : value;
  if (typeof cohort === 'string' && cohort !== '') return cohort;
  if (typeof cohort === 'number' && Number.isSafeInteger(cohort) && cohort > 0) return cohort;
  throw new FilterError('invalid_input', 'This must be the id or the name of a cohort.', attr);
}

/** The condition that a person is in one of the cohorts, or in none of them. */
function cohortCondition(
  filter: PropertyFilter,
  target: Omit<FilterTarget, 'attr'>,
  attr: string,
): Expression | null {
  const operator = cohortOperators[filter.operator ?? 'exact'];
  if (operator === undefined)
    throw new FilterError(
      'invalid_input',
      'The operator of a filter on a cohort is in or not_in.',
      `${attr}__operator`,
    );
  const person = personOf(target, attr);
  return combineConditions(
    operator === 'in' ? 'or' : 'and',
    cohortsOf(filter, attr).map(({ cohort }) =>
      buildExpression(`{person} ${operator} cohort {cohort}`, { person, cohort: { value: cohort } }),
    ),
  );
}

const cohortOperators: Readonly<Partial<Record<FilterOperator, 'in' | 'not in'>>> = {
  exact: 'in',
  in: 'in',
  is_not: 'not in',
  not_in: 'not in',
};

/** Parses the expression of a filter of type hogql. @throws FilterError */
function parseKey(key: string, attr: string): Expression {
  try {
    return parseExpression(key);
  } catch (error) {
    if (!(error instanceof DialectError)) throw error;
    throw new FilterError('dialect_error', error.message, attr, { cause: error });
  }
}

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
 * @throws FilterError for values that the operator cannot compare
 */
function operatorCondition(
  operand: FilterOperand,
  { operator, value }: Pick<PropertyFilter, 'operator' | 'value'>,
  attr: string,
): Expression | null {
  const name = operator ?? 'exact';
  if (name === 'is_set') return isPresent(operand);
  if (name === 'is_not_set') return isMissing(operand);
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
      throw new FilterError(
        'not_supported',
        'Path cleaning rules are not stored. Use the operator regex.',
        `${attr}__operator`,
      );
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
    throw new FilterError('invalid_input', 'This field must be a list of two numbers.', attr);
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
  if (problem !== null) throw new FilterError('invalid_input', problem.message, attr);
  return pattern;
}

/** A value of a filter and its path in the request. */
interface FilterValue<Of extends FilterScalar = FilterScalar> {
  readonly value: Of;
  readonly attr: string;
}

/** Each date of a filter is a condition. */
const maxDates = 100;

/**
 * The condition that an operand equals one of several values. The value null matches operands without a value. Numbers
 * are compared as numbers.
 */
function isOneOf(operand: FilterOperand, filterValues: readonly FilterValue[]): Expression | null {
  if (operand.kind === 'time') {
    const excess = filterValues[maxDates];
    if (excess)
      throw new FilterError(
        'invalid_input',
        `A filter on a time has at most ${maxDates} values.`,
        excess.attr,
      );
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
    values.includes(null) ? isMissing(operand) : null,
  ]);
}

/** The condition that an operand equals none of the values. An operand without a value does not. */
function isNoneOf(operand: FilterOperand, values: readonly FilterValue[]): Expression | null {
  const found = isOneOf(operand, values);
  return found && buildExpression('not {found}', { found });
}

function equalsAny(operand: Expression, values: readonly (string | number)[]): Expression {
  const [only] = values;
  return values.length === 1 && only !== undefined
    ? buildExpression('{operand} = {value}', { operand, value: { value: only } })
    : buildExpression('{operand} in {values}', { operand, values: { value: values } });
}

type Order = '<' | '<=' | '>' | '>=';

/**
 * The condition that an operand is smaller or larger than a value: as numbers if the value is one or reads as one, else
 * as strings. An operand without a value never matches; nor does a non-numeric string compared with a number.
 */
function isOrdered(operand: FilterOperand, order: Order, value: Value, attr: string): Expression {
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
function numberIn(value: Value): number | null {
  if (typeof value === 'number') return value;
  return typeof value === 'string' && /^\s*[-+]?(\d+(\.\d*)?|\.\d+)(e[-+]?\d{1,2})?\s*$/i.test(value)
    ? Number(value)
    : null;
}

/** The condition that a time is on the day, or in the second, of a value. */
function isAtDate(operand: FilterOperand, value: Value, attr: string): Expression {
  const { start, next } = dateOf(value, attr);
  return buildExpression('{operand} >= {start} and {operand} < {next}', {
    operand: asTime(operand),
    start,
    next,
  });
}

function isBeforeDate(operand: FilterOperand, value: Value, attr: string): Expression {
  const { moment } = dateOf(value, attr);
  return buildExpression('{operand} < {moment}', { operand: asTime(operand), moment });
}

/** The condition that a time is after a value. After a day means on a later day. */
function isAfterDate(operand: FilterOperand, value: Value, attr: string): Expression {
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
  throw new FilterError('invalid_input', invalidDateMessage, attr);
}

/** A date of a filter as expressions of the dialect, so that zone and time are those of the query. */
interface DateValue {
  /** The point in time itself. */
  readonly moment: Expression;
  /** The start of its day, or of its shorter unit. */
  readonly start: Expression;
  /** The start of the next one. */
  readonly next: Expression;
  /** Whether it is a whole day, so that "after" means after its end. */
  readonly isDay: boolean;
}

/** Parses the date in a filter's value; null if it is not one. */
function dateValueOf(text: string): DateValue | null {
  const absolute = parseAbsoluteDate(text);
  if (absolute === null) {
    const relative = parseRelativeDate(text);
    return relative === null ? null : relativeValue(relative);
  }
  const { local, hasOffset, isDay } = absolute;
  const literalOf = (time: number, digits = ''): Expression => {
    const text = DateTime.fromMillis(time, { zone: 'utc' }).toFormat("yyyy-MM-dd'T'HH:mm:ss.SSS");
    return buildTimeLiteral(`${text}${digits}${hasOffset ? 'Z' : ''}`);
  };
  const unit = isDay ? 86_400_000 : 1000;
  const start = Math.floor(local / unit) * unit;
  return {
    moment: literalOf(local, microsecondDigits(absolute)),
    start: literalOf(start),
    next: literalOf(start + unit),
    isDay,
  };
}

/** The dialect's functions that subtract a unit and truncate to it. */
const functions: Readonly<Record<RelativeUnit, { readonly earlier: string; readonly start: string }>> = {
  second: { earlier: 'subtractSeconds', start: 'toStartOfSecond' },
  minute: { earlier: 'subtractMinutes', start: 'toStartOfMinute' },
  hour: { earlier: 'subtractHours', start: 'toStartOfHour' },
  day: { earlier: 'subtractDays', start: 'toStartOfDay' },
  week: { earlier: 'subtractWeeks', start: 'toStartOfWeek' },
  month: { earlier: 'subtractMonths', start: 'toStartOfMonth' },
  quarter: { earlier: 'subtractWeeks', start: 'toStartOfQuarter' },
  year: { earlier: 'subtractYears', start: 'toStartOfYear' },
};
const later: Readonly<Record<RelativeUnit, string>> = {
  second: 'addSeconds',
  minute: 'addMinutes',
  hour: 'addHours',
  day: 'addDays',
  week: 'addWeeks',
  month: 'addMonths',
  quarter: 'addQuarters',
  year: 'addYears',
};
const shorterThanDay: ReadonlySet<RelativeUnit> = new Set(['second', 'minute', 'hour']);

function relativeValue({ amount, unit, position }: RelativeDate): DateValue {
  const count = unit === 'quarter' ? 13 * amount : amount;
  const ago = buildExpression(`${functions[unit].earlier}(now(), {count})`, { count: { value: count } });
  const cutTo = (to: RelativeUnit, moment: Expression): Expression =>
    buildExpression(`toDateTime(${functions[to].start}({moment}))`, { moment });
  const after = (to: RelativeUnit, moment: Expression): Expression =>
    buildExpression(`${later[to]}({moment}, 1)`, { moment });
  const first = cutTo(unit, ago);
  const moment = position === null ? ago : position === 'start' ? first : after(unit, first);
  const precision = shorterThanDay.has(unit) ? unit : 'day';
  // The end of a unit is the start of the next one; its day is the day before.
  const start = cutTo(
    precision,
    position === 'end' ? buildExpression('subtractSeconds({moment}, 1)', { moment }) : moment,
  );
  return { moment, start, next: after(precision, start), isDay: false };
}
