import { arrayEmitters } from './emit/arrays.ts';
import { geometryEmitters } from './emit/geometry.ts';
import { numberEmitters } from './emit/numbers.ts';
import { scalar, standardScalar, type FunctionDefinition } from './function_definition.ts';

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
