import { bitEmitters } from './emit/bits.ts';
import { scalar, type FunctionDefinition } from './function_definition.ts';

/** Functions of the bits of integers. */
export const bitFunctions: readonly FunctionDefinition[] = [
  scalar('bitAnd', ['integer', 'integer'], 'integer', 'Bits set in both.', {
    sql: '($1 & $2)',
    cases: { 'bitAnd(12, 10)': 8, 'bitAnd(-1, 7)': 7, 'bitAnd(0, 5)': 0 },
  }),
  scalar('bitOr', ['integer', 'integer'], 'integer', 'Bits set in either.', {
    sql: '($1 | $2)',
    cases: { 'bitOr(12, 10)': 14, 'bitOr(-8, 7)': -1, 'bitOr(0, 0)': 0 },
  }),
  scalar('bitXor', ['integer', 'integer'], 'integer', 'Bits set in exactly one of both.', {
    sql: '($1 # $2)',
    cases: { 'bitXor(12, 10)': 6, 'bitXor(7, 7)': 0, 'bitXor(0, 5)': 5 },
  }),
  scalar('bitNot', ['integer'], 'integer', 'Bits inverted.', {
    sql: '(~ $1)',
    cases: { "bitNot(toInt('5'))": -6, "bitNot(toInt('0'))": -1, "bitNot(toInt('-1'))": 0 },
  }),
  scalar('bitShiftLeft', ['integer', 'integer'], 'integer', 'Bits shifted left.', {
    ranges: [{ index: 1, min: 0 }],
    sql: bitEmitters.bitShiftLeft,
    cases: { 'bitShiftLeft(1, 4)': 16, 'bitShiftLeft(3, 0)': 3, "bitShiftLeft(toInt('5'), 2)": 20 },
  }),
  scalar('bitShiftRight', ['integer', 'integer'], 'integer', 'Bits shifted right.', {
    ranges: [{ index: 1, min: 0 }],
    sql: bitEmitters.bitShiftRight,
    cases: { 'bitShiftRight(16, 4)': 1, 'bitShiftRight(3, 0)': 3, 'bitShiftRight(1, 4)': 0 },
  }),
  scalar('bitTest', ['integer', 'integer'], 'integer', 'The bit at a position, from 0.', {
    ranges: [{ index: 1, min: 0, max: 63 }],
    sql: bitEmitters.bitTest,
    cases: { 'bitTest(5, 0)': 1, 'bitTest(5, 1)': 0, 'bitTest(NULL, 1)': null },
  }),
  scalar('bitCount', ['integer'], 'integer', 'Number of set bits.', {
    sql: bitEmitters.bitCount,
    cases: { 'bitCount(7)': 3, 'bitCount(0)': 0, 'bitCount(255)': 8 },
  }),
];
