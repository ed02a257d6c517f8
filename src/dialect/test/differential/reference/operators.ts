import type { ArithmeticOperator, ComparisonOperator } from '../../../ast.ts';
import { comparable, convert, roundDecimal, unify } from './conversions.ts';
import type { Meaning, ReferenceScope, Row } from './scope.ts';
import { addDuration, addToDate, dayCount, midnightOf } from './times.ts';
import { commonType, isNumber, itemOf, type ReferenceType, typeOf, withNull } from './types.ts';
import {
  compare,
  type Duration,
  identityOf,
  isSame,
  listOf,
  RangeError,
  unsupported,
  type Value,
} from './values.ts';

/** A function of values that is null if one of them is. */
export function strict(
  type: ReferenceType,
  operands: readonly Meaning[],
  apply: (...values: readonly Exclude<Value, null>[]) => Value,
): Meaning {
  return {
    type: withNull(type, type.nullable || operands.some((operand) => operand.type.nullable)),
    of: (row) => {
      const values: Exclude<Value, null>[] = [];
      for (const operand of operands) {
        const value = operand.of(row);
        if (value === null) return null;
        values.push(value);
      }
      return apply(...values);
    },
  };
}

const isTime = ({ type }: Meaning): boolean => type.kind === 'date' || type.kind === 'datetime';

export function arithmetic(
  operator: ArithmeticOperator,
  left: Meaning,
  right: Meaning,
  scope: ReferenceScope,
): Meaning {
  const zone = scope.world.timezone;
  if (isTime(left) && right.type.kind === 'interval') return addInterval(left, right, operator, zone);
  if (isTime(left) && isTime(right) && operator === '-') {
    const [a, b] = unify([left, right], scope) as readonly [Meaning, Meaning];
    if (a.type.kind === 'date')
      return strict(typeOf('integer'), [a, b], (x, y) => dayCount(x as string) - dayCount(y as string));
    return strict(typeOf('float'), [a, b], (x, y) => Number((x as bigint) - (y as bigint)) / 1e6);
  }
  if (left.type.kind === 'date' && right.type.kind === 'integer')
    return strict(typeOf('date'), [left, right], (date, days) =>
      addToDate(date as string, {
        months: 0,
        days: Number(days) * (operator === '-' ? -1 : 1),
        microseconds: 0n,
      }),
    );
  return numberArithmetic(operator, asNumber(left, scope), asNumber(right, scope), scope);
}

function asNumber(meaning: Meaning, scope: ReferenceScope): Meaning {
  if (isNumber(meaning.type.kind)) return meaning;
  if (meaning.type.kind === 'boolean' || meaning.type.kind === 'null')
    return convert(meaning, typeOf('integer'), scope);
  return unsupported(`Arithmetic with ${meaning.type.kind}.`);
}

function numberArithmetic(
  operator: ArithmeticOperator,
  left: Meaning,
  right: Meaning,
  scope: ReferenceScope,
): Meaning {
  if (operator === '/')
    return strict(typeOf('float'), [left, right], (a, b) => Number(a) / positiveZero(Number(b)));
  const type = commonType(left.type, right.type) ?? typeOf('float');
  const sides = [convert(left, type, scope), convert(right, type, scope)];
  if (operator === '%') {
    if (type.kind === 'integer')
      return strict(typeOf('integer', true), sides, (a, b) =>
        b === 0n ? null : (a as bigint) % (b as bigint),
      );
    return strict(typeOf('float', true), sides, (a, b) =>
      b === 0 ? null : roundDecimal((a as number) % (b as number)),
    );
  }
  if (type.kind === 'integer')
    return strict(typeOf('integer'), sides, (a, b) => integerOf(operator, a as bigint, b as bigint));
  return strict(withNull(type, false), sides, (a, b) => {
    const value = numberOf(operator, a as number, b as number);
    return type.kind === 'decimal' ? roundDecimal(value) : value;
  });
}

/** Division by -0 is division by 0. */
const positiveZero = (value: number): number => (value === 0 ? 0 : value);

/** @throws RangeError beyond 64 bits */
function integerOf(operator: ArithmeticOperator, a: bigint, b: bigint): bigint {
  const value = operator === '+' ? a + b : operator === '-' ? a - b : a * b;
  if (value !== BigInt.asIntN(64, value)) throw new RangeError('An integer is out of range.');
  return value;
}

const numberOf = (operator: ArithmeticOperator, a: number, b: number): number =>
  operator === '+' ? a + b : operator === '-' ? a - b : a * b;

function addInterval(time: Meaning, interval: Meaning, operator: ArithmeticOperator, zone: string): Meaning {
  if (operator !== '+' && operator !== '-') return unsupported(`${operator} with an interval.`);
  const signed = (value: Value): Duration => {
    const { months, days, microseconds } = value as Duration;
    return operator === '+'
      ? { months, days, microseconds }
      : { months: -months, days: -days, microseconds: -microseconds };
  };
  if (time.type.kind === 'datetime')
    return strict(typeOf('datetime'), [time, interval], (moment, added) =>
      addDuration(moment as bigint, signed(added), zone),
    );
  if (interval.type.unit === 'clock')
    return strict(typeOf('datetime'), [time, interval], (date, added) =>
      addDuration(midnightOf(date as string, zone), signed(added), zone),
    );
  return strict(typeOf('date'), [time, interval], (date, added) => addToDate(date as string, signed(added)));
}

/** Comparisons are never null, except those of datetimes and in joins. */
export function comparison(
  operator: ComparisonOperator,
  left: Meaning,
  right: Meaning,
  scope: ReferenceScope,
): Meaning {
  if (left.isNull === true || right.isNull === true) {
    const other = right.isNull === true ? left : right;
    if (operator === '=') return { type: typeOf('boolean'), of: (row) => other.of(row) === null };
    if (operator === '!=') return { type: typeOf('boolean'), of: (row) => other.of(row) !== null };
  }
  const [a, b] = comparable(left, right, scope);
  const unmatched = isDefault(right) && left.type.unmatched === true ? left : right;
  const isWithDefault =
    unmatched.type.unmatched === true && isDefault(unmatched === left ? right : left) && isEquality(operator);
  if (isWithDefault && (operator === '=' || !scope.inJoin))
    return {
      type: typeOf('boolean'),
      of: (row) => (unmatched.of(row) === null || isSame(a.of(row), b.of(row))) === (operator === '='),
    };
  const keepsNull = scope.inJoin || a.type.kind === 'datetime';
  const nullable = keepsNull && (a.type.nullable || b.type.nullable);
  return {
    type: typeOf('boolean', nullable),
    of: (row) => {
      const [x, y] = [a.of(row), b.of(row)];
      if (keepsNull && (x === null || y === null)) return null;
      if (operator === '=') return isSame(x, y);
      if (operator === '!=') return !isSame(x, y);
      if (x === null || y === null) return false;
      return inOrder(operator, compare(x, y));
    },
  };
}

const isEquality = (operator: ComparisonOperator): boolean => operator === '=' || operator === '!=';

/** Whether a literal is what ClickHouse has in the columns of rows that an outer join did not match. */
const isDefault = ({ constant }: Meaning): boolean =>
  constant === '' || constant === 0n || constant === 0 || constant === false;

function inOrder(operator: ComparisonOperator, order: number): boolean {
  switch (operator) {
    case '<':
      return order < 0;
    case '<=':
      return order <= 0;
    case '>':
      return order > 0;
    case '>=':
      return order >= 0;
    default:
      return unsupported(operator);
  }
}

/** LIKE and ILIKE: null matches null alone; negations of null are true. */
export function match(
  operator: ComparisonOperator,
  left: Meaning,
  right: Meaning,
  scope: ReferenceScope,
): Meaning {
  const isText = ({ type }: Meaning): boolean => type.kind === 'string' || type.kind === 'null';
  if (!isText(left) || !isText(right)) return unsupported('LIKE without strings.');
  const flags = operator.endsWith('ilike') ? 'isu' : 'su';
  const isNegated = operator.startsWith('not ');
  return {
    type: typeOf('boolean', scope.inJoin && (left.type.nullable || right.type.nullable)),
    of: (row) => {
      const [value, pattern] = [left.of(row), right.of(row)];
      if (value === null || pattern === null) return scope.inJoin ? null : (value === pattern) !== isNegated;
      return new RegExp(`^${likePattern(pattern as string)}$`, flags).test(value as string) !== isNegated;
    },
  };
}

function likePattern(text: string): string {
  if (text.includes('\\')) return unsupported('A pattern with a backslash.');
  return text.replaceAll(/[%_]|[^%_]/gsu, (character) =>
    character === '%'
      ? '.*'
      : character === '_'
        ? '.'
        : character.replace(/[$()*+.?[\\\]^{|}/]/, String.raw`\$&`),
  );
}

/** Whether a value is among others; null is among nulls. */
export function isIn(
  left: Meaning,
  candidates: readonly Meaning[],
  isNegated: boolean,
  scope: ReferenceScope,
): Meaning {
  const pairs = candidates.map((candidate) =>
    candidate.isNull === true ? ([left, candidate] as const) : comparable(left, candidate, scope),
  );
  return {
    type: typeOf('boolean'),
    of: (row: Row) =>
      pairs.some(([value, candidate]) => isSame(value.of(row), candidate.of(row))) !== isNegated,
  };
}

export function isInArray(left: Meaning, array: Meaning, isNegated: boolean, scope: ReferenceScope): Meaning {
  const type = commonType(left.type, itemOf(array.type)) ?? unsupported('IN of another type.');
  const value = convert(left, type, scope);
  const items = convert(array, { kind: 'array', nullable: array.type.nullable, item: type }, scope);
  return {
    type: typeOf('boolean'),
    of: (row) => {
      const list = listOf(items.of(row));
      const wanted = identityOf(value.of(row));
      return list.some((item) => identityOf(item) === wanted) !== isNegated;
    },
  };
}

/** AND and OR with three values. */
export function logical(operator: 'and' | 'or', operands: readonly Meaning[]): Meaning {
  const decisive = operator === 'or';
  return {
    type: typeOf(
      'boolean',
      operands.some(({ type }) => type.nullable),
    ),
    of: (row) => {
      const values = operands.map((operand) => operand.of(row));
      if (values.includes(decisive)) return decisive;
      return values.includes(null) ? null : !decisive;
    },
  };
}
