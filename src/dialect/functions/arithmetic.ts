import { computeOnce } from '../compile/compiler.ts';
import { rawSql, sql, type Sql } from '../sql.ts';
import { scalarType, type Type } from '../types.ts';
import { clamped } from './argument_values.ts';
import { conditionEmitters } from './conditions.ts';
import {
  argument,
  argumentSql,
  byCompiler,
  type CallSite,
  type Emitter,
  type FunctionDefinition,
  scalar,
  standardScalar,
} from './function_definition.ts';

const float = (nullable: boolean): Type => scalarType('float', nullable);

/** A function of a float `x`, which must not fail for any value. */
const floatFunction =
  (body: (x: Sql) => Sql): Emitter =>
  (site) => {
    const value = argument(site, 0);
    return {
      sql: computeOnce([{ ...value, sql: asFloat(value.sql) }], (x = sql``) => body(x)),
      type: float(value.type.nullable),
    };
  };

const asFloat = (value: Sql): Sql => sql`(${value})::float8`;

const logarithm = (call: (x: Sql) => Sql): Emitter =>
  floatFunction(
    (x) => sql`(case when ${x} > 0 then ${call(x)} when ${x} = 0 then '-Infinity'::float8
      when ${x} < 0 then 'NaN'::float8 end)`,
  );

/** NaN for infinite angles, for which PostgreSQL fails. */
const trigonometric = (name: string): Emitter =>
  floatFunction(
    (x) =>
      sql`(case when ${x} in ('Infinity', '-Infinity') then 'NaN'::float8 else ${rawSql(name)}(${x}) end)`,
  );

const inverseTrigonometric = (name: string): Emitter =>
  floatFunction(
    (x) =>
      sql`(case when ${x} between -1 and 1 then ${rawSql(name)}(${x}) when ${x} is not null then 'NaN'::float8 end)`,
  );

const twoFloatFunction =
  (body: (x: Sql, y: Sql) => Sql): Emitter =>
  (site) => {
    const [first, second] = [argument(site, 0), argument(site, 1)];
    return {
      sql: computeOnce(
        [first, second].map((value) => ({ ...value, sql: asFloat(value.sql) })),
        (x = sql``, y = sql``) => body(x, y),
      ),
      type: float(first.type.nullable || second.type.nullable),
    };
  };

/** Power; infinity on overflow, NaN if undefined. */
const power = twoFloatFunction(
  (x, y) => sql`(case when ${x} = 0 and ${y} < 0 then 'Infinity'::float8
    when ${x} < 0 and ${y} <> trunc(${y}) then 'NaN'::float8
    when ${x} <> 0 and abs(${x}) < 'Infinity' and abs(${y}) < 'Infinity' and greatest(least(${y}, 1e300), -1e300) * ln(abs(${x})) > 709.78
      then case when ${x} < 0 and (${y} / 2) <> trunc(${y} / 2) then '-Infinity'::float8 else 'Infinity'::float8 end
    when ${x} <> 0 and abs(${x}) < 'Infinity' and abs(${y}) < 'Infinity' and greatest(least(${y}, 1e300), -1e300) * ln(abs(${x})) < -744 then 0::float8
    else power(${x}, ${y}) end)`,
);

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
    const nullable = site.values.some(({ type }) => type.nullable);
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

export const numberEmitters = {
  intDiv: integerQuotient,
  max2: floatOf('greatest'),
  min2: floatOf('least'),
  exp: floatFunction(
    (x) => sql`(case when ${x} > 709.78 and ${x} < 'Infinity' then 'Infinity'::float8
      when ${x} < -744 and ${x} > '-Infinity' then 0::float8 else exp(${x}) end)`,
  ),
  log: logarithm((x) => sql`ln(${x})`),
  ln: logarithm((x) => sql`ln(${x})`),
  log2: logarithm((x) => sql`(ln(${x}) / ln(2::float8))`),
  log10: logarithm((x) => sql`log(${x})`),
  sqrt: floatFunction((x) => sql`(case when ${x} < 0 then 'NaN'::float8 else sqrt(${x}) end)`),
  cbrt: floatFunction((x) => sql`cbrt(${x})`),
  sin: trigonometric('sin'),
  cos: trigonometric('cos'),
  tan: trigonometric('tan'),
  asin: inverseTrigonometric('asin'),
  acos: inverseTrigonometric('acos'),
  atan: floatFunction((x) => sql`atan(${x})`),
  atan2: twoFloatFunction((y, x) => sql`atan2(${y}, ${x})`),
  hypot: twoFloatFunction(
    (
      x,
      y,
    ) => sql`(case when greatest(abs(${x}), abs(${y})) between 1e-100 and 1e150 and least(abs(${x}), abs(${y})) > 1e-150 then sqrt(${x} * ${x} + ${y} * ${y})
      when ${x} is not null and ${y} is not null then greatest(abs(${x}), abs(${y})) end)`,
  ),
  pow: power,
  power,
  isNaN: isOneOf(sql`'NaN'`),
  isInfinite: isOneOf(sql`'Infinity', '-Infinity'`),
  isFinite: isOneOf(sql`'NaN', 'Infinity', '-Infinity'`, true),
  ifNotFinite,
  factorial,
  gcd: divisor('gcd'),
  lcm: divisor('lcm'),
  sign,
} satisfies Readonly<Record<string, Emitter>>;

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

/** Rounding to a number of decimals, or before the point if negative. */
const roundingEmitters = {
  floor: rounding('floor'),
  ceil: rounding('ceil'),
  trunc: rounding('trunc'),
  round: rounding('round'),
  roundBankers: rounding('even'),
} satisfies Readonly<Record<string, Emitter>>;

/** Arithmetic and rounding. */
export const arithmeticFunctions: readonly FunctionDefinition[] = [
  scalar('plus', ['any', 'any'], 'any', 'The sum, also of a time and an interval.', {
    sql: byCompiler,
  }),
  scalar('minus', ['any', 'any'], 'any', 'The difference, also of a time and an interval.', {
    sql: byCompiler,
  }),
  scalar('multiply', ['number', 'number'], 'number', 'The product.', {
    sql: byCompiler,
  }),
  scalar('divide', ['number', 'number'], 'float', 'The quotient as a float.', {
    sql: byCompiler,
  }),
  scalar('intDiv', ['number', 'number'], 'integer', 'The quotient without its fraction.', {
    sql: numberEmitters.intDiv,
  }),
  scalar('modulo', ['number', 'number'], 'number', 'The remainder of a division.', {
    sql: byCompiler,
  }),
  scalar('negate', ['number'], 'number', 'The negated number.', {
    sql: '(- $1)',
  }),
  standardScalar('abs', ['number'], 'number', 'The absolute value.', {
    sql: 'abs($1)',
  }),
  scalar('gcd', ['integer', 'integer'], 'integer', 'The greatest common divisor.', {
    sql: numberEmitters.gcd,
  }),
  scalar('lcm', ['integer', 'integer'], 'integer', 'The least common multiple.', {
    sql: numberEmitters.lcm,
  }),
  scalar('max2', ['number', 'number'], 'float', 'The larger of two numbers.', {
    sql: numberEmitters.max2,
  }),
  scalar('min2', ['number', 'number'], 'float', 'The smaller of two numbers.', {
    sql: numberEmitters.min2,
  }),
  standardScalar('least', ['T', 'T...'], 'T', 'The smallest argument.', {
    sql: conditionEmitters.least,
  }),
  standardScalar('greatest', ['T', 'T...'], 'T', 'The largest argument.', {
    sql: conditionEmitters.greatest,
  }),
  standardScalar('floor', ['number', 'integer?'], 'number', 'The number rounded down.', {
    sql: roundingEmitters.floor,
  }),
  standardScalar('ceil', ['number', 'integer?'], 'number', 'The number rounded up.', {
    sql: roundingEmitters.ceil,
  }),
  standardScalar('round', ['number', 'integer?'], 'number', 'The number rounded.', {
    sql: roundingEmitters.round,
  }),
  standardScalar('trunc', ['number', 'integer?'], 'number', 'The number rounded towards zero.', {
    sql: roundingEmitters.trunc,
  }),
  scalar('roundBankers', ['number', 'integer?'], 'number', 'The number rounded, halves to even.', {
    sql: roundingEmitters.roundBankers,
  }),
  standardScalar('sign', ['number'], 'integer', '-1, 0 or 1.', {
    sql: numberEmitters.sign,
  }),
  scalar('factorial', ['integer'], 'integer', 'The factorial.', {
    sql: numberEmitters.factorial,
  }),
  scalar('isNaN', ['number'], 'boolean', 'Whether a number is NaN.', {
    sql: numberEmitters.isNaN,
  }),
  scalar('isFinite', ['number'], 'boolean', 'Whether a number is neither infinite nor NaN.', {
    sql: numberEmitters.isFinite,
  }),
  scalar('isInfinite', ['number'], 'boolean', 'Whether a number is infinite.', {
    sql: numberEmitters.isInfinite,
  }),
  scalar('ifNotFinite', ['number', 'number'], 'number', 'The first number if it is finite, or the second.', {
    sql: numberEmitters.ifNotFinite,
  }),
];

/** Shifts by 64 or more yield 0; PostgreSQL would shift modulo 64. */
const shift =
  (operator: '<<' | '>>'): Emitter =>
  (site) => {
    const bits = argumentSql(site, 1);
    const nullable = site.values.some(({ type }) => type.nullable);
    return {
      sql: sql`(case when ${bits} between 0 and 63 then ${argumentSql(site, 0)} ${rawSql(operator)} (${bits})::int4
        when ${bits} is not null then 0 end)`,
      type: scalarType('integer', nullable),
    };
  };

/** Bit functions of integers. */
const bitEmitters = {
  bitShiftLeft: shift('<<'),
  bitShiftRight: shift('>>'),
  bitTest: (site) => ({
    sql: sql`((${argumentSql(site, 0)} >> ${clamped(argumentSql(site, 1), sql`0`, sql`63`)}) & 1)`,
    type: scalarType(
      'integer',
      site.values.some(({ type }) => type.nullable),
    ),
  }),
  bitCount: (site) => ({
    sql: sql`(bit_count((${argumentSql(site, 0)})::int8::bit(64)))::int8`,
    type: scalarType('integer', argument(site, 0).type.nullable),
  }),
} satisfies Readonly<Record<string, Emitter>>;

/** Functions of the bits of integers. */
export const bitFunctions: readonly FunctionDefinition[] = [
  scalar('bitAnd', ['integer', 'integer'], 'integer', 'Bits set in both.', {
    sql: '($1 & $2)',
  }),
  scalar('bitOr', ['integer', 'integer'], 'integer', 'Bits set in either.', {
    sql: '($1 | $2)',
  }),
  scalar('bitXor', ['integer', 'integer'], 'integer', 'Bits set in exactly one of both.', {
    sql: '($1 # $2)',
  }),
  scalar('bitNot', ['integer'], 'integer', 'Bits inverted.', {
    sql: '(~ $1)',
  }),
  scalar('bitShiftLeft', ['integer', 'integer'], 'integer', 'Bits shifted left.', {
    ranges: [{ index: 1, min: 0 }],
    sql: bitEmitters.bitShiftLeft,
  }),
  scalar('bitShiftRight', ['integer', 'integer'], 'integer', 'Bits shifted right.', {
    ranges: [{ index: 1, min: 0 }],
    sql: bitEmitters.bitShiftRight,
  }),
  scalar('bitTest', ['integer', 'integer'], 'integer', 'The bit at a position, from 0.', {
    ranges: [{ index: 1, min: 0, max: 63 }],
    sql: bitEmitters.bitTest,
  }),
  scalar('bitCount', ['integer'], 'integer', 'Number of set bits.', {
    sql: bitEmitters.bitCount,
  }),
];
