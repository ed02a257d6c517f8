import { computeOnce, computeSqlOnce } from '../compile/compiler.ts';
import { commaList, joinSql, rawSql, sql, type Sql } from '../sql.ts';
import { scalarType, type Type, withNull } from '../types.ts';
import {
  clamped,
  argument,
  argumentSql,
  byCompiler,
  type CallSite,
  type Emitter,
  type FunctionDefinition,
  isNullable,
  scalar,
  standardScalar,
} from './function_definition.ts';

export const float = (nullable: boolean): Type => scalarType('float', nullable);

export const asFloat = (value: Sql): Sql => sql`(${value})::float8`;

/** Null for out-of-range results and NaN. */
const wholeQuotient = (first: Sql, second: Sql): Sql =>
  sql`(case when abs(${asFloat(first)}) < 1e18 and abs(${asFloat(second)}) > 1e-100 and abs((${first})::numeric / nullif((${second})::numeric, 0)) < 9e18
    then trunc((${first})::numeric / nullif((${second})::numeric, 0))::int8 end)`;

const integerQuotient: Emitter = (site) => {
  const [first, second] = [argument(site, 0), argument(site, 1)];
  const integers = first.type.kind === 'integer' && second.type.kind === 'integer';
  const quotient = integers
    ? sql`(${first.sql} / nullif(${second.sql}, 0))`
    : wholeQuotient(first.sql, second.sql);
  return { sql: quotient, type: scalarType('integer', true) };
};

/** The remainder with the sign of the dividend; null if the divisor is 0 or if either is not finite. */
const remainder =
  (make: (rest: Sql, divisor: Sql) => Sql): Emitter =>
  (site) => {
    const [first, second] = [argument(site, 0), argument(site, 1)];
    const isWhole = first.type.kind === 'integer' && second.type.kind === 'integer';
    const type = isWhole ? scalarType('integer', true) : float(true);
    const finite = (value: Sql): Sql =>
      sql`${asFloat(value)} > '-Infinity' and ${asFloat(value)} < 'Infinity'`;
    const rest = isWhole
      ? sql`(${first.sql} % nullif(${second.sql}, 0))`
      : sql`(case when ${finite(first.sql)} and ${finite(second.sql)} then ((${first.sql})::numeric % nullif((${second.sql})::numeric, 0))::float8 end)`;
    const given = sql`${first.sql} is not null and ${second.sql} is not null`;
    return {
      sql: computeSqlOnce(
        [rest],
        (found = sql``) => sql`(case when ${given} then ${make(found, second.sql)} end)`,
      ),
      type,
    };
  };

const floatOf =
  (name: 'greatest' | 'least'): Emitter =>
  (site) => {
    const [first, second] = [argument(site, 0), argument(site, 1)];
    const either = sql`${rawSql(name)}(${asFloat(first.sql)}, ${asFloat(second.sql)})`;
    const nullable = first.type.nullable || second.type.nullable;
    return {
      sql: nullable
        ? sql`(case when ${first.sql} is not null and ${second.sql} is not null then ${either} end)`
        : either,
      type: float(nullable),
    };
  };

const isOneOf =
  (list: Sql, negated = false): Emitter =>
  (site) => {
    const value = argument(site, 0);
    const word = negated ? sql`not in` : sql`in`;
    return {
      sql: sql`(${asFloat(value.sql)} ${word} (${list}))`,
      type: scalarType('boolean', value.type.nullable),
    };
  };

/** Null is not finite, as in ClickHouse; NaN is greater than infinity. */
const ifNotFinite: Emitter = (site) => {
  const [value, other] = [argument(site, 0), argument(site, 1)];
  return {
    sql: computeOnce(
      [value],
      (x = sql``) =>
        sql`(case when ${asFloat(x)} > '-Infinity' and ${asFloat(x)} < 'Infinity' then ${asFloat(x)} else ${asFloat(other.sql)} end)`,
    ),
    type: float(value.type.nullable || other.type.nullable),
  };
};

const factorial: Emitter = (site) => ({
  sql: computeOnce(
    [argument(site, 0)],
    (n = sql``) => sql`(case when ${n} < 0 then 1 when ${n} <= 20 then factorial(${n})::int8 end)`,
  ),
  type: scalarType('integer', true),
});

/** Computed as numeric, because the smallest int8 has no positive counterpart. */
const divisor =
  (name: 'gcd' | 'lcm'): Emitter =>
  (site) => {
    const nullable = isNullable(site);
    const call = sql`${rawSql(name)}((${argumentSql(site, 0)})::numeric, (${argumentSql(site, 1)})::numeric)`;
    if (name === 'gcd') return { sql: sql`(${call})::int8`, type: scalarType('integer', nullable) };
    return {
      sql: sql`(case when ${call} < 9223372036854775808 then (${call})::int8 end)`,
      type: scalarType('integer', true),
    };
  };

const sign: Emitter = (site: CallSite) => ({
  sql: sql`(sign((${argumentSql(site, 0)})::float8))::int8`,
  type: scalarType('integer', argument(site, 0).type.nullable),
});

type Rounding = 'floor' | 'ceil' | 'trunc' | 'round' | 'even';

/** PostgreSQL rounds halves of floats to even. */
function rounded(name: Rounding, value: Sql): Sql {
  return name === 'even' ? sql`round((${value})::float8)` : sql`${rawSql(name)}(${value})`;
}

const rounding =
  (name: Rounding): Emitter =>
  (site) => {
    const value = argument(site, 0);
    const digits = site.values[1];
    const type = value.type;
    if (type.kind === 'integer' && digits === undefined) return { sql: value.sql, type };
    if (digits === undefined)
      return {
        sql: type.kind === 'float' ? rounded(name, value.sql) : sql`(${rounded(name, value.sql)})::numeric`,
        type,
      };
    return type.kind === 'integer' ? ofInteger(name, site) : ofFraction(name, site);
  };

/** Powers of ten are exact as numeric. */
const scaleOf = (digits: Sql): Sql =>
  sql`(10::numeric ^ (case when ${digits} is not null then least(greatest(${digits}, -300), 300)::int4 end))`;

function ofInteger(name: Rounding, site: CallSite): { sql: Sql; type: ReturnType<typeof scalarType> } {
  const [value, digits] = [argument(site, 0), argument(site, 1)];
  const nullable = value.type.nullable || digits.type.nullable;
  const scaled = sql`((${value.sql})::numeric * ${scaleOf(digits.sql)})`;
  const whole = name === 'even' ? sql`round((${scaled})::float8)::numeric` : sql`${rawSql(name)}(${scaled})`;
  return {
    sql: sql`(case when (${digits.sql}) >= 0 then ${value.sql} when (${digits.sql}) < -18 then 0
      when (${digits.sql}) < 0 then least(greatest(${whole} / ${scaleOf(digits.sql)}, -9223372036854775808), 9223372036854775807)::int8 end)`,
    type: scalarType('integer', nullable),
  };
}

function ofFraction(name: Rounding, site: CallSite): { sql: Sql; type: ReturnType<typeof scalarType> } {
  const [value, digits] = [argument(site, 0), argument(site, 1)];
  const nullable = value.type.nullable || digits.type.nullable;
  const factor = sql`(${scaleOf(sql`(abs(least(greatest(${digits.sql}, -300), 300)))`)})::float8`;
  const up = sql`(${value.sql})::float8`;
  const body = (
    x: Sql,
  ): Sql => sql`(case when ${x} in ('NaN', 'Infinity', '-Infinity') or (${digits.sql}) > 17 or abs(${x}) > 1e290 then ${x}
    when (${digits.sql}) < 0 then ${rounded(name, sql`(${x} / ${factor})`)} * ${factor}
    when (${digits.sql}) >= 0 then ${rounded(name, sql`(${x} * ${factor})`)} / ${factor} end)`;
  return {
    sql: computeOnce([{ ...value, sql: up }], (x = sql``) => body(x)),
    type: scalarType('float', nullable),
  };
}

/** Nulls are ignored, in ClickHouse as in PostgreSQL. */
const extremeOf =
  (name: 'least' | 'greatest'): Emitter =>
  (site) => {
    const collated = site.values.map((value) =>
      site.returnType.kind === 'string' ? sql`(${value.sql}) collate "C"` : value.sql,
    );
    const call =
      name === 'least' ? sql`least(${commaList(collated)})` : sql`greatest(${commaList(collated)})`;
    return {
      sql: call,
      type: withNull(
        site.returnType,
        site.values.every(({ type }) => type.nullable),
      ),
    };
  };

/** Arithmetic and rounding. */
export const arithmeticFunctions: readonly FunctionDefinition[] = [
  scalar('plus(any, any): any', 'The sum, also of a time and an interval.', byCompiler),
  scalar('minus(any, any): any', 'The difference, also of a time and an interval.', byCompiler),
  scalar('multiply(number, number): number', 'The product.', byCompiler),
  scalar('divide(number, number): float', 'The quotient as a float.', byCompiler),
  scalar('intDiv(number, number): integer', 'The quotient without its fraction.', integerQuotient),
  scalar('modulo(number, number): number', 'The remainder of a division.', byCompiler),
  scalar('intDivOrZero(number, number): integer', 'The quotient without its fraction, or 0.', (site) => {
    const quotient = integerQuotient(site);
    const found = 'type' in quotient ? quotient.sql : quotient;
    const given = site.values
      .filter(({ type }) => type.nullable)
      .map((value) => sql`${value.sql} is not null`);
    const whole = sql`coalesce(${found}, 0)`;
    return given.length === 0
      ? { sql: whole, type: scalarType('integer') }
      : {
          sql: sql`(case when ${joinSql(given, ' and ')} then ${whole} end)`,
          type: scalarType('integer', true),
        };
  }),
  scalar(
    'moduloOrZero(number, number): number',
    'The remainder of a division, 0 if the divisor is.',
    remainder((rest) => sql`coalesce(${rest}, 0)`),
  ),
  scalar(
    'positiveModulo(number, number): number',
    'The remainder of a division, never negative.',
    remainder(
      (rest, divisor) => sql`(case when ${rest} < 0 then ${rest} + abs(${divisor}) else ${rest} end)`,
    ),
  ),
  scalar('negate(number): number', 'The negated number.', '(- $1)'),
  standardScalar('abs(number): number', 'The absolute value.', 'abs($1)'),
  scalar('gcd(integer, integer): integer', 'The greatest common divisor.', divisor('gcd')),
  scalar('lcm(integer, integer): integer', 'The least common multiple.', divisor('lcm')),
  scalar('max2(number, number): float', 'The larger of two numbers.', floatOf('greatest')),
  scalar('min2(number, number): float', 'The smaller of two numbers.', floatOf('least')),
  standardScalar('least(T, T...): T', 'The smallest argument.', extremeOf('least')),
  standardScalar('greatest(T, T...): T', 'The largest argument.', extremeOf('greatest')),
  standardScalar('floor(number, integer?): number', 'The number rounded down.', rounding('floor')),
  standardScalar('ceil(number, integer?): number', 'The number rounded up.', rounding('ceil')),
  standardScalar('round(number, integer?): number', 'The number rounded.', rounding('round')),
  standardScalar('trunc(number, integer?): number', 'The number rounded towards zero.', rounding('trunc')),
  scalar('roundBankers(number, integer?): number', 'The number rounded, halves to even.', rounding('even')),
  standardScalar('sign(number): integer', '-1, 0 or 1.', sign),
  scalar('factorial(integer): integer', 'The factorial.', factorial),
  scalar('isNaN(number): boolean', 'Whether a number is NaN.', isOneOf(sql`'NaN'`)),
  scalar(
    'isFinite(number): boolean',
    'Whether a number is neither infinite nor NaN.',
    isOneOf(sql`'NaN', 'Infinity', '-Infinity'`, true),
  ),
  scalar(
    'isInfinite(number): boolean',
    'Whether a number is infinite.',
    isOneOf(sql`'Infinity', '-Infinity'`),
  ),
  scalar(
    'ifNotFinite(number, number): number',
    'The first number if it is finite, or the second.',
    ifNotFinite,
  ),
];

/** Shifts by 64 or more yield 0; PostgreSQL would shift modulo 64. */
const shift =
  (operator: '<<' | '>>'): Emitter =>
  (site) => {
    const bits = argumentSql(site, 1);
    const nullable = isNullable(site);
    return {
      sql: sql`(case when ${bits} between 0 and 63 then ${argumentSql(site, 0)} ${rawSql(operator)} (${bits})::int4
        when ${bits} is not null then 0 end)`,
      type: scalarType('integer', nullable),
    };
  };

/** Functions of the bits of integers. */
export const bitFunctions: readonly FunctionDefinition[] = [
  scalar('bitAnd(integer, integer): integer', 'Bits set in both.', '($1 & $2)'),
  scalar('bitOr(integer, integer): integer', 'Bits set in either.', '($1 | $2)'),
  scalar('bitXor(integer, integer): integer', 'Bits set in exactly one of both.', '($1 # $2)'),
  scalar('bitNot(integer): integer', 'Bits inverted.', '(~ $1)'),
  scalar('bitShiftLeft(integer, integer): integer', 'Bits shifted left.', shift('<<'), {
    ranges: [{ index: 1, min: 0 }],
  }),
  scalar('bitShiftRight(integer, integer): integer', 'Bits shifted right.', shift('>>'), {
    ranges: [{ index: 1, min: 0 }],
  }),
  scalar(
    'bitTest(integer, integer): integer',
    'The bit at a position, from 0.',
    (site) => ({
      sql: sql`((${argumentSql(site, 0)} >> ${clamped(argumentSql(site, 1), sql`0`, sql`63`)}) & 1)`,
      type: scalarType('integer', isNullable(site)),
    }),
    { ranges: [{ index: 1, min: 0, max: 63 }] },
  ),
  scalar('bitCount(integer): integer', 'Number of set bits.', (site) => ({
    sql: sql`(bit_count((${argumentSql(site, 0)})::int8::bit(64)))::int8`,
    type: scalarType('integer', argument(site, 0).type.nullable),
  })),
];
