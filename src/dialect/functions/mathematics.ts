import { arrayEmitters } from './emit/arrays.ts';
import { geometryEmitters } from './emit/geometry.ts';
import { numberEmitters } from './emit/numbers.ts';
import { scalar, standardScalar, type FunctionDefinition } from './function_definition.ts';

/** Mathematical functions and geometry. */
export const mathematicalFunctions: readonly FunctionDefinition[] = [
  standardScalar('exp', ['number'], 'float', 'e to a power.', {
    sql: numberEmitters.exp,
    cases: { 'exp(0)': 1, 'exp(1)': 2.718281828459045, 'exp(-1.5)': 0.22313016014842982 },
  }),
  standardScalar('log', ['number'], 'float', 'The natural logarithm.', {
    sql: numberEmitters.log,
    cases: { 'log(1)': 0, 'log(2.5)': 0.9162907318741551, 'log(0)': '-inf' },
  }),
  standardScalar('ln', ['number'], 'float', 'The natural logarithm.', {
    sql: numberEmitters.ln,
    cases: { 'ln(1)': 0, 'ln(10)': 2.302585092994046, 'ln(0)': '-inf' },
  }),
  standardScalar('log2', ['number'], 'float', 'The logarithm to base 2.', {
    sql: numberEmitters.log2,
    cases: { 'log2(8)': 3, 'log2(0.5)': -1, 'log2(0)': '-inf' },
  }),
  standardScalar('log10', ['number'], 'float', 'The logarithm to base 10.', {
    sql: numberEmitters.log10,
    cases: { 'log10(1000)': 3, 'log10(0.1)': -1, 'log10(0)': '-inf' },
  }),
  standardScalar('sqrt', ['number'], 'float', 'The square root.', {
    sql: numberEmitters.sqrt,
    cases: { 'sqrt(4)': 2, 'sqrt(2)': 1.4142135623730951, 'sqrt(0)': 0 },
  }),
  standardScalar('cbrt', ['number'], 'float', 'The cube root.', {
    sql: numberEmitters.cbrt,
    cases: { 'cbrt(27)': 3, 'cbrt(-8)': -2, 'cbrt(0)': 0 },
  }),
  standardScalar('pow', ['number', 'number'], 'float', 'The power.', {
    sql: numberEmitters.pow,
    cases: { 'pow(2, 10)': 1024, 'pow(2, -1)': 0.5, 'pow(0, 0)': 1 },
  }),
  standardScalar('power', ['number', 'number'], 'float', 'The power.', {
    sql: numberEmitters.power,
    cases: { 'power(2, 3)': 8, 'power(4, 0.5)': 2, 'power(0, 0)': 1 },
  }),
  standardScalar('sin', ['number'], 'float', 'The sine.', {
    sql: numberEmitters.sin,
    cases: { 'sin(0)': 0, 'sin(1)': 0.8414709848078965, 'sin(-1.5)': -0.9974949866040544 },
  }),
  standardScalar('cos', ['number'], 'float', 'The cosine.', {
    sql: numberEmitters.cos,
    cases: { 'cos(0)': 1, 'cos(1)': 0.5403023058681398, 'cos(-1.5)': 0.0707372016677029 },
  }),
  standardScalar('tan', ['number'], 'float', 'The tangent.', {
    sql: numberEmitters.tan,
    cases: { 'tan(0)': 0, 'tan(1)': 1.5574077246549023, 'tan(-1.5)': -14.101419947171719 },
  }),
  standardScalar('asin', ['number'], 'float', 'The arc sine.', {
    sql: numberEmitters.asin,
    cases: { 'asin(0)': 0, 'asin(1)': 1.5707963267948966, 'asin(0.5)': 0.5235987755982991 },
  }),
  standardScalar('acos', ['number'], 'float', 'The arc cosine.', {
    sql: numberEmitters.acos,
    cases: { 'acos(0)': 1.5707963267948966, 'acos(1)': 0, 'acos(0.5)': 1.0471975511965974 },
  }),
  standardScalar('atan', ['number'], 'float', 'The arc tangent.', {
    sql: numberEmitters.atan,
    cases: { 'atan(0)': 0, 'atan(1)': 0.7853981633974483, 'atan(-1.5)': -0.982793723247329 },
  }),
  standardScalar('atan2', ['number', 'number'], 'float', 'The angle of a point.', {
    sql: numberEmitters.atan2,
    cases: { 'atan2(0, 1)': 0, 'atan2(1, 1)': 0.7853981633974483, 'atan2(-1, -1)': -2.356194490192345 },
  }),
  scalar('hypot', ['number', 'number'], 'float', 'The length of a hypotenuse.', {
    sql: numberEmitters.hypot,
    cases: { 'hypot(3, 4)': 5, 'hypot(0, 0)': 0, 'hypot(NULL, 4)': null },
  }),
  scalar('pi', [], 'float', 'The number pi.', {
    sql: 'pi()',
    cases: { 'pi()': 3.141592653589793 },
  }),
  scalar('e', [], 'float', 'The number e.', {
    sql: 'exp(1.0::float8)',
    cases: { 'e()': 2.718281828459045 },
  }),
  scalar(
    'greatCircleDistance',
    ['number', 'number', 'number', 'number'],
    'float',
    'Distance in meters between two locations.',
    {
      sql: geometryEmitters.greatCircleDistance,
      cases: {
        'greatCircleDistance(0, 0, 0, 0)': 0,
        'greatCircleDistance(13.4, 52.5, 2.35, 48.85)': 876800.285262486,
        'greatCircleDistance(0, 0, 180, 0)': 20015114.352186374,
      },
    },
  ),
  scalar(
    'pointInPolygon',
    ['tuple', 'array(tuple)', 'array(tuple)...'],
    'boolean',
    'Whether a point is inside a polygon.',
    {
      sql: geometryEmitters.pointInPolygon,
      cases: {
        'pointInPolygon((3, 3), [(0, 0), (8, 0), (8, 8), (0, 8)])': true,
        'pointInPolygon((9, 9), [(0, 0), (8, 0), (8, 8), (0, 8)])': false,
      },
    },
  ),
  scalar('tuple', ['any...'], 'tuple', 'A tuple of the arguments.', {
    sql: arrayEmitters.tuple,
    cases: { "tuple(1, 'a')": [1, 'a'], 'tuple(1)': [1], 'tuple(1, NULL)': [1, null] },
  }),
];
