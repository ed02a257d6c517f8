import { conditionEmitters } from '../compile/functions/conditions.ts';
import { byCompiler, scalar, standardScalar, type FunctionDefinition } from './function_definition.ts';

/** Comparison and logic, mostly operators. */
export const comparisonFunctions: readonly FunctionDefinition[] = [
  scalar('equals', ['any', 'any'], 'boolean', 'Whether two values are equal.', {
    sql: byCompiler,
    cases: { 'equals(1, 1)': true, 'equals(1, 2)': false, 'equals(NULL, NULL)': true },
  }),
  scalar('notEquals', ['any', 'any'], 'boolean', 'Whether two values differ.', {
    sql: byCompiler,
    cases: { 'notEquals(1, 1)': false, 'notEquals(1, 2)': true, 'notEquals(1, NULL)': true },
  }),
  scalar('less', ['any', 'any'], 'boolean', 'Whether the first is smaller.', {
    sql: byCompiler,
    cases: { 'less(1, 2)': true, 'less(2, 1)': false, 'less(NULL, 1)': false },
  }),
  scalar('greater', ['any', 'any'], 'boolean', 'Whether the first is larger.', {
    sql: byCompiler,
    cases: { 'greater(1, 2)': false, 'greater(2, 1)': true, 'greater(NULL, 1)': false },
  }),
  scalar('lessOrEquals', ['any', 'any'], 'boolean', 'Whether the first is smaller or equal.', {
    sql: byCompiler,
    cases: {
      'lessOrEquals(1, 2)': true,
      'lessOrEquals(2, 1)': false,
      'lessOrEquals(nullIf(1, 1), 1)': false,
    },
  }),
  scalar('greaterOrEquals', ['any', 'any'], 'boolean', 'Whether the first is larger or equal.', {
    sql: byCompiler,
    cases: {
      'greaterOrEquals(1, 2)': false,
      'greaterOrEquals(2, 1)': true,
      'greaterOrEquals(1, nullIf(1, 1))': false,
    },
  }),
  scalar('in', ['any', 'any'], 'boolean', 'Whether a value is among others.', {
    sql: byCompiler,
    cases: { 'in(1, (1, 2))': true, 'in(3, (1, 2))': false },
  }),
  scalar('notIn', ['any', 'any'], 'boolean', 'Whether a value is not among others.', {
    sql: byCompiler,
    cases: { 'notIn(1, (1, 2))': false, 'notIn(3, (1, 2))': true },
  }),
  scalar('like', ['string', 'string'], 'boolean', 'Whether a string matches a pattern with % and _.', {
    sql: byCompiler,
    cases: { "like('abc', 'a%')": true, "like('abc', 'A%')": false, "like(nullIf('a', 'a'), 'a')": false },
  }),
  scalar('ilike', ['string', 'string'], 'boolean', 'The same, case-insensitive.', {
    sql: byCompiler,
    cases: { "ilike('abc', 'A%')": true, "ilike('', 'a')": false, "ilike(nullIf('a', 'a'), 'a')": false },
  }),
  scalar('notLike', ['string', 'string'], 'boolean', 'Whether a string does not match a pattern.', {
    sql: byCompiler,
    cases: {
      "notLike('abc', 'a%')": false,
      "notLike('abc', 'A%')": true,
      "notLike(nullIf('a', 'a'), 'a')": true,
    },
  }),
  scalar('notILike', ['string', 'string'], 'boolean', 'The same, case-insensitive.', {
    sql: byCompiler,
    cases: {
      "notILike('abc', 'A%')": false,
      "notILike('abc', 'x%')": true,
      "notILike(nullIf('a', 'a'), 'a')": true,
    },
  }),
  standardScalar('and', ['boolean', 'boolean', 'boolean...'], 'boolean', 'Whether all are true.', {
    sql: byCompiler,
    cases: { 'and(1, 1)': true, 'and(1, 0)': false, 'and(true, false, true)': false },
  }),
  standardScalar('or', ['boolean', 'boolean', 'boolean...'], 'boolean', 'Whether any is true.', {
    sql: byCompiler,
    cases: { 'or(1, 0)': true, 'or(0, 0)': false, 'or(true, false, true)': true },
  }),
  standardScalar(
    'xor',
    ['boolean', 'boolean', 'boolean...'],
    'boolean',
    'Whether an odd number of them is true.',
    {
      sql: conditionEmitters.xor,
      cases: { 'xor(1, 1)': false, 'xor(1, 0)': true, 'xor(NULL, 1)': null },
    },
  ),
  standardScalar('not', ['boolean'], 'boolean', 'Whether it is false.', {
    sql: '(NOT $1)',
    cases: { 'not(1)': false, 'not(0)': true, 'not(true)': false },
  }),
];
