import { itemTypeOf } from '../compile/expressions/coerce.ts';
import { sql, type Sql } from '../sql.ts';
import { isNumber, scalarType } from '../types.ts';
import { numberEmitters } from './arithmetic.ts';
import { arrayEmitters } from './arrays.ts';
import {
  argument,
  argumentNode,
  argumentSql,
  type Emitter,
  type FunctionDefinition,
  scalar,
  standardScalar,
} from './function_definition.ts';

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
      throw site.statement.error(
        `Function '${site.name}' expects pairs of numbers.`,
        argumentNode(site, index),
      );
  if (site.values.length > 2)
    throw site.statement.error(
      `Function '${site.name}' does not support holes.`,
      argumentNode(site, 2),
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

const geometryEmitters = { greatCircleDistance, pointInPolygon } satisfies Readonly<Record<string, Emitter>>;

/** Mathematical functions and geometry. */
export const mathematicalFunctions: readonly FunctionDefinition[] = [
  standardScalar('exp', ['number'], 'float', 'e to a power.', {
    sql: numberEmitters.exp,
  }),
  standardScalar('log', ['number'], 'float', 'The natural logarithm.', {
    sql: numberEmitters.log,
  }),
  standardScalar('ln', ['number'], 'float', 'The natural logarithm.', {
    sql: numberEmitters.ln,
  }),
  standardScalar('log2', ['number'], 'float', 'The logarithm to base 2.', {
    sql: numberEmitters.log2,
  }),
  standardScalar('log10', ['number'], 'float', 'The logarithm to base 10.', {
    sql: numberEmitters.log10,
  }),
  standardScalar('sqrt', ['number'], 'float', 'The square root.', {
    sql: numberEmitters.sqrt,
  }),
  standardScalar('cbrt', ['number'], 'float', 'The cube root.', {
    sql: numberEmitters.cbrt,
  }),
  standardScalar('pow', ['number', 'number'], 'float', 'The power.', {
    sql: numberEmitters.pow,
  }),
  standardScalar('power', ['number', 'number'], 'float', 'The power.', {
    sql: numberEmitters.power,
  }),
  standardScalar('sin', ['number'], 'float', 'The sine.', {
    sql: numberEmitters.sin,
  }),
  standardScalar('cos', ['number'], 'float', 'The cosine.', {
    sql: numberEmitters.cos,
  }),
  standardScalar('tan', ['number'], 'float', 'The tangent.', {
    sql: numberEmitters.tan,
  }),
  standardScalar('asin', ['number'], 'float', 'The arc sine.', {
    sql: numberEmitters.asin,
  }),
  standardScalar('acos', ['number'], 'float', 'The arc cosine.', {
    sql: numberEmitters.acos,
  }),
  standardScalar('atan', ['number'], 'float', 'The arc tangent.', {
    sql: numberEmitters.atan,
  }),
  standardScalar('atan2', ['number', 'number'], 'float', 'The angle of a point.', {
    sql: numberEmitters.atan2,
  }),
  scalar('hypot', ['number', 'number'], 'float', 'The length of a hypotenuse.', {
    sql: numberEmitters.hypot,
  }),
  scalar('pi', [], 'float', 'The number pi.', {
    sql: 'pi()',
  }),
  scalar('e', [], 'float', 'The number e.', {
    sql: 'exp(1.0::float8)',
  }),
  scalar(
    'greatCircleDistance',
    ['number', 'number', 'number', 'number'],
    'float',
    'Distance in meters between two locations.',
    {
      sql: geometryEmitters.greatCircleDistance,
    },
  ),
  scalar(
    'pointInPolygon',
    ['tuple', 'array(tuple)', 'array(tuple)...'],
    'boolean',
    'Whether a point is inside a polygon.',
    {
      sql: geometryEmitters.pointInPolygon,
    },
  ),
  scalar('tuple', ['any...'], 'tuple', 'A tuple of the arguments.', {
    sql: arrayEmitters.tuple,
  }),
];
