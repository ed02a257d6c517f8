import { conditionEmitters } from '../compile/functions/conditions.ts';
import { numberEmitters } from './emit/numbers.ts';
import { roundingEmitters } from './emit/rounding.ts';
import { byCompiler, scalar, standardScalar, type FunctionDefinition } from './function_definition.ts';

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
