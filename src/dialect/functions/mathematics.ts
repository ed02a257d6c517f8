import { computeOnce } from '../compile/compiler.ts';
import { itemTypeOf } from '../compile/expressions/coerce.ts';
import { derive } from '../resolve/value.ts';
import { rawSql, sql, type Sql } from '../sql.ts';
import { isNumber, scalarType } from '../types.ts';
import { asFloat, float } from './arithmetic.ts';
import {
  argument,
  argumentError,
  argumentSql,
  type Emitter,
  type FunctionDefinition,
  scalar,
  standardScalar,
} from './function_definition.ts';

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

/** Buckets of equal width from a lower to an upper bound. */
const widthBucket: Emitter = (site) => {
  const [x, from, to] = [
    asFloat(argumentSql(site, 0)),
    asFloat(argumentSql(site, 1)),
    asFloat(argumentSql(site, 2)),
  ];
  const count = argumentSql(site, 3);
  return {
    sql: sql`(case when ${x} < ${from} then 0 when ${x} >= ${to} then ${count} + 1
      when ${x} < ${to} and ${count} > 0 then least(floor((${x} - ${from}) / (${to} - ${from}) * ${count})::int8, ${count} - 1) + 1 end)::int8`,
    type: scalarType('integer', true),
  };
};

/** A power of a constant. */
const powerOf =
  (base: '2' | '10'): Emitter =>
  (site) => {
    const exponent = argument(site, 0);
    const constant = derive(`number ${base}`, [], float(false), sql`${rawSql(base)}::float8`);
    return power({ ...site, values: [constant, exponent] });
  };

/** Distance in meters on a sphere. ClickHouse uses a sine table; results differ in the third digit. */
const greatCircleDistance: Emitter = (site) => {
  const degree = (index: number): Sql => {
    const angle = sql`(${argumentSql(site, index)})::float8`;
    return sql`radians(case when abs(${angle}) <= 1000000 then round((${angle})::numeric, 12)::float8 end)`;
  };
  const half = (from: number, to: number): Sql => sql`sin((${degree(to)} - ${degree(from)}) / 2) ^ 2`;
  const haversine = sql`(${half(1, 3)} + cos(${degree(1)}) * cos(${degree(3)}) * ${half(0, 2)})`;
  return {
    sql: sql`(2 * 6371008.7714 * asin(sqrt(least(1, greatest(0, ${haversine})))))::float8`,
    type: scalarType('float', true),
  };
};

/** Counts the sides to the right of the point; an odd number means inside. */
const pointInPolygon: Emitter = (site) => {
  const [point, polygon] = [argument(site, 0), argument(site, 1)];
  for (const [index, type] of [point.type, itemTypeOf(polygon)].entries())
    if (type.kind !== 'tuple' || type.items.length !== 2 || !type.items.every(isNumber))
      throw argumentError(site, index, `Function '${site.name}' expects pairs of numbers.`);
  if (site.values.length > 2)
    throw argumentError(
      site,
      2,
      `Function '${site.name}' does not support holes.`,
      'Use AND NOT for each hole.',
    );
  const x = sql`(${point.sql} ->> 0)::float8`;
  const y = sql`(${point.sql} ->> 1)::float8`;
  const corner = (alias: Sql, index: Sql): Sql => sql`(${alias} ->> ${index})::float8`;
  const [x1, y1] = [corner(sql`sides.a`, sql`0`), corner(sql`sides.a`, sql`1`)];
  const [x2, y2] = [corner(sql`sides.b`, sql`0`), corner(sql`sides.b`, sql`1`)];
  return {
    sql: sql`((select count(*) filter (where (${y1} > ${y}) <> (${y2} > ${y})
      and ${x} < (${x2} - ${x1}) * (${y} - ${y1}) / nullif(${y2} - ${y1}, 0) + ${x1}) from
      (select corners.v as a, coalesce(lead(corners.v) over (order by corners.at), first_value(corners.v) over (order by corners.at)) as b
        from jsonb_array_elements(${polygon.sql}) with ordinality as corners(v, at)) as sides) % 2 = 1)`,
    type: scalarType('boolean', point.type.nullable),
  };
};

/** Mathematical functions and geometry. */
export const mathematicalFunctions: readonly FunctionDefinition[] = [
  standardScalar(
    'exp(number): float',
    'e to a power.',
    floatFunction(
      (x) => sql`(case when ${x} > 709.78 and ${x} < 'Infinity' then 'Infinity'::float8
      when ${x} < -744 and ${x} > '-Infinity' then 0::float8 else exp(${x}) end)`,
    ),
  ),
  standardScalar(
    'log(number): float',
    'The natural logarithm.',
    logarithm((x) => sql`ln(${x})`),
  ),
  standardScalar(
    'ln(number): float',
    'The natural logarithm.',
    logarithm((x) => sql`ln(${x})`),
  ),
  standardScalar(
    'log2(number): float',
    'The logarithm to base 2.',
    logarithm((x) => sql`(ln(${x}) / ln(2::float8))`),
  ),
  standardScalar(
    'log10(number): float',
    'The logarithm to base 10.',
    logarithm((x) => sql`log(${x})`),
  ),
  standardScalar(
    'sqrt(number): float',
    'The square root.',
    floatFunction((x) => sql`(case when ${x} < 0 then 'NaN'::float8 else sqrt(${x}) end)`),
  ),
  standardScalar(
    'cbrt(number): float',
    'The cube root.',
    floatFunction((x) => sql`cbrt(${x})`),
  ),
  standardScalar('pow(number, number): float', 'The power.', power),
  standardScalar('power(number, number): float', 'The power.', power),
  standardScalar('sin(number): float', 'The sine.', trigonometric('sin')),
  standardScalar('cos(number): float', 'The cosine.', trigonometric('cos')),
  standardScalar('tan(number): float', 'The tangent.', trigonometric('tan')),
  standardScalar('asin(number): float', 'The arc sine.', inverseTrigonometric('asin')),
  standardScalar('acos(number): float', 'The arc cosine.', inverseTrigonometric('acos')),
  standardScalar(
    'atan(number): float',
    'The arc tangent.',
    floatFunction((x) => sql`atan(${x})`),
  ),
  standardScalar(
    'atan2(number, number): float',
    'The angle of a point.',
    twoFloatFunction((y, x) => sql`atan2(${y}, ${x})`),
  ),
  scalar(
    'hypot(number, number): float',
    'The length of a hypotenuse.',
    twoFloatFunction(
      (
        x,
        y,
      ) => sql`(case when greatest(abs(${x}), abs(${y})) between 1e-100 and 1e150 and least(abs(${x}), abs(${y})) > 1e-150 then sqrt(${x} * ${x} + ${y} * ${y})
      when ${x} is not null and ${y} is not null then greatest(abs(${x}), abs(${y})) end)`,
    ),
  ),
  scalar('exp2(number): float', '2 to a power.', powerOf('2')),
  scalar('exp10(number): float', '10 to a power.', powerOf('10')),
  scalar(
    'log1p(number): float',
    'The natural logarithm of a number plus 1, exact for small numbers.',
    floatFunction(
      (x) => sql`(case when ${x} = -1 then '-Infinity'::float8 when ${x} < -1 then 'NaN'::float8
        when abs(${x}) < 1e-5 then ${x} - ${x} * ${x} / 2 + ${x} * ${x} * ${x} / 3 else ln(1 + ${x}) end)`,
    ),
  ),
  scalar(
    'degrees(number): float',
    'Radians as degrees.',
    floatFunction((x) => sql`(${x} * (180 / pi()))`),
  ),
  scalar(
    'radians(number): float',
    'Degrees as radians.',
    floatFunction((x) => sql`(${x} * (pi() / 180))`),
  ),
  scalar(
    'widthBucket(number, number, number, integer): integer',
    'The number of the histogram bucket of a value: 0 below the range, one more than the buckets above it.',
    widthBucket,
    { ranges: [{ index: 3, min: 1 }] },
  ),
  scalar('pi(): float', 'The number pi.', 'pi()'),
  scalar('e(): float', 'The number e.', 'exp(1.0::float8)'),
  scalar(
    'greatCircleDistance(number, number, number, number): float',
    'Distance in meters between two locations.',
    greatCircleDistance,
  ),
  scalar(
    'pointInPolygon(tuple, array(tuple), array(tuple)...): boolean',
    'Whether a point is inside a polygon.',
    pointInPolygon,
  ),
];
