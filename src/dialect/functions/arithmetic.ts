import { conditionEmitters } from '../compile/functions/conditions.ts';
import { numberEmitters } from './emit/numbers.ts';
import { roundingEmitters } from './emit/rounding.ts';
import { byCompiler, scalar, standardScalar, type FunctionDefinition } from './function_definition.ts';

/** Arithmetic and rounding. */
export const arithmeticFunctions: readonly FunctionDefinition[] = [
  scalar('plus', ['any', 'any'], 'any', 'The sum, also of a time and an interval.', {
    sql: byCompiler,
    cases: { 'plus(1, 2)': 3, 'plus(1.5, 2)': 3.5, 'plus(-1, 1)': 0 },
  }),
  scalar('minus', ['any', 'any'], 'any', 'The difference, also of a time and an interval.', {
    sql: byCompiler,
    cases: { 'minus(1, 2)': -1, 'minus(1.5, 2)': -0.5, 'minus(-1, 1)': -2 },
  }),
  scalar('multiply', ['number', 'number'], 'number', 'The product.', {
    sql: byCompiler,
    cases: { 'multiply(3, 4)': 12, 'multiply(1.5, 2)': 3, 'multiply(-1, 0)': 0 },
  }),
  scalar('divide', ['number', 'number'], 'float', 'The quotient as a float.', {
    sql: byCompiler,
    cases: { 'divide(7, 2)': 3.5, 'divide(6, 3)': 2, 'divide(1, 0)': 'inf' },
  }),
  scalar('intDiv', ['number', 'number'], 'integer', 'The quotient without its fraction.', {
    sql: numberEmitters.intDiv,
    cases: { 'intDiv(7, 2)': 3, 'intDiv(-7, 2)': -3, 'intDiv(0, 5)': 0 },
  }),
  scalar('modulo', ['number', 'number'], 'number', 'The remainder of a division.', {
    sql: byCompiler,
    cases: { 'modulo(7, 3)': 1, 'modulo(-7, 3)': -1, 'modulo(7.5, 2)': 1.5 },
  }),
  scalar('negate', ['number'], 'number', 'The negated number.', {
    sql: '(- $1)',
    cases: { 'negate(5)': -5, 'negate(-5)': 5, 'negate(0)': 0 },
  }),
  standardScalar('abs', ['number'], 'number', 'The absolute value.', {
    sql: 'abs($1)',
    cases: { 'abs(5)': 5, 'abs(-1.5)': 1.5, 'abs(0)': 0 },
  }),
  scalar('gcd', ['integer', 'integer'], 'integer', 'The greatest common divisor.', {
    sql: numberEmitters.gcd,
    cases: { 'gcd(12, 18)': 6, 'gcd(7, 5)': 1, 'gcd(NULL, 4)': null },
  }),
  scalar('lcm', ['integer', 'integer'], 'integer', 'The least common multiple.', {
    sql: numberEmitters.lcm,
    cases: { 'lcm(4, 6)': 12, 'lcm(7, 5)': 35, 'lcm(1, 1)': 1 },
  }),
  scalar('max2', ['number', 'number'], 'float', 'The larger of two numbers.', {
    sql: numberEmitters.max2,
    cases: { 'max2(1, 2)': 2, 'max2(-1.5, -2)': -1.5, 'max2(0, 0)': 0 },
  }),
  scalar('min2', ['number', 'number'], 'float', 'The smaller of two numbers.', {
    sql: numberEmitters.min2,
    cases: { 'min2(1, 2)': 1, 'min2(-1.5, -2)': -2, 'min2(0, 0)': 0 },
  }),
  standardScalar('least', ['T', 'T...'], 'T', 'The smallest argument.', {
    sql: conditionEmitters.least,
    cases: {
      'least(1, 2)': 1,
      "least('a', 'b')": 'a',
      "least(toDate('2024-01-02'), toDate('2024-01-01'))": '2024-01-01',
    },
  }),
  standardScalar('greatest', ['T', 'T...'], 'T', 'The largest argument.', {
    sql: conditionEmitters.greatest,
    cases: { 'greatest(1, 2)': 2, 'greatest(3, 2, 1)': 3, "greatest('a', 'b')": 'b' },
  }),
  standardScalar('floor', ['number', 'integer?'], 'number', 'The number rounded down.', {
    sql: roundingEmitters.floor,
    cases: { 'floor(1.5)': 1, 'floor(-1.5)': -2, 'floor(2)': 2 },
  }),
  standardScalar('ceil', ['number', 'integer?'], 'number', 'The number rounded up.', {
    sql: roundingEmitters.ceil,
    cases: { 'ceil(1.5)': 2, 'ceil(-1.5)': -1, 'ceil(0)': 0 },
  }),
  standardScalar('round', ['number', 'integer?'], 'number', 'The number rounded.', {
    sql: roundingEmitters.round,
    cases: { 'round(1.5)': 2, 'round(-2.5)': -2, 'round(123.456, 1)': 123.5 },
  }),
  standardScalar('trunc', ['number', 'integer?'], 'number', 'The number rounded towards zero.', {
    sql: roundingEmitters.trunc,
    cases: { 'trunc(1.5)': 1, 'trunc(-1.5)': -1, 'trunc(123.456, 1)': 123.4 },
  }),
  scalar('roundBankers', ['number', 'integer?'], 'number', 'The number rounded, halves to even.', {
    sql: roundingEmitters.roundBankers,
    cases: { 'roundBankers(2.5)': 2, 'roundBankers(3.5)': 4, 'roundBankers(-2.5)': -2 },
  }),
  standardScalar('sign', ['number'], 'integer', '-1, 0 or 1.', {
    sql: numberEmitters.sign,
    cases: { 'sign(5)': 1, 'sign(-2.5)': -1, 'sign(0)': 0 },
  }),
  scalar('factorial', ['integer'], 'integer', 'The factorial.', {
    sql: numberEmitters.factorial,
    cases: { 'factorial(0)': 1, 'factorial(5)': 120, 'factorial(20)': 2432902008176640000 },
  }),
  scalar('isNaN', ['number'], 'boolean', 'Whether a number is NaN.', {
    sql: numberEmitters.isNaN,
    cases: { 'isNaN(1)': false, 'isNaN(divide(0, 0))': true, 'isNaN(NULL)': null },
  }),
  scalar('isFinite', ['number'], 'boolean', 'Whether a number is neither infinite nor NaN.', {
    sql: numberEmitters.isFinite,
    cases: { 'isFinite(1)': true, 'isFinite(divide(0, 0))': false, 'isFinite(NULL)': null },
  }),
  scalar('isInfinite', ['number'], 'boolean', 'Whether a number is infinite.', {
    sql: numberEmitters.isInfinite,
    cases: { 'isInfinite(1)': false, 'isInfinite(divide(-1, 0))': true, 'isInfinite(NULL)': null },
  }),
  scalar('ifNotFinite', ['number', 'number'], 'number', 'The first number if it is finite, or the second.', {
    sql: numberEmitters.ifNotFinite,
    cases: {
      'ifNotFinite(1.5, 7.5)': 1.5,
      'ifNotFinite(divide(0, 0), 7.5)': 7.5,
      'ifNotFinite(0.0, 1.5)': 0,
    },
  }),
];
