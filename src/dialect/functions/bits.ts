import { bitEmitters } from './emit/bits.ts';
import { scalar, type FunctionDefinition } from './function_definition.ts';

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
