import { argument, type CallSite, type Emitter, argumentSql } from '../../compile/functions/call_site.ts';
import { rawSql, sql, type Sql } from '../../sql.ts';
import { scalar, type Type } from '../../types.ts';
import { computeOnce } from '../../compile/compute_once.ts';

const float = (nullable: boolean): Type => scalar('float', nullable);

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
  return { sql: quotient, type: scalar('integer', true) };
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
      type: scalar('boolean', value.type.nullable),
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
  type: scalar('integer', true),
});

/** Computed as numeric, because the smallest int8 has no positive counterpart. */
const divisor =
  (name: 'gcd' | 'lcm'): Emitter =>
  (site) => {
    const nullable = site.values.some(({ type }) => type.nullable);
    const call = sql`${rawSql(name)}((${argumentSql(site, 0)})::numeric, (${argumentSql(site, 1)})::numeric)`;
    if (name === 'gcd') return { sql: sql`(${call})::int8`, type: scalar('integer', nullable) };
    return {
      sql: sql`(case when ${call} < 9223372036854775808 then (${call})::int8 end)`,
      type: scalar('integer', true),
    };
  };

const sign: Emitter = (site: CallSite) => ({
  sql: sql`(sign((${argumentSql(site, 0)})::float8))::int8`,
  type: scalar('integer', argument(site, 0).type.nullable),
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
