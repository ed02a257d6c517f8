import { conditionEmitters } from '../compile/functions/conditions.ts';
import { byCompiler, scalar, standardScalar, type FunctionDefinition } from './function_definition.ts';

/** Comparison and logic, mostly operators. */
export const comparisonFunctions: readonly FunctionDefinition[] = [
  scalar('equals', ['any', 'any'], 'boolean', 'Whether two values are equal.', {
    sql: byCompiler,
  }),
  scalar('notEquals', ['any', 'any'], 'boolean', 'Whether two values differ.', {
    sql: byCompiler,
  }),
  scalar('less', ['any', 'any'], 'boolean', 'Whether the first is smaller.', {
    sql: byCompiler,
  }),
  scalar('greater', ['any', 'any'], 'boolean', 'Whether the first is larger.', {
    sql: byCompiler,
  }),
  scalar('lessOrEquals', ['any', 'any'], 'boolean', 'Whether the first is smaller or equal.', {
    sql: byCompiler,
  }),
  scalar('greaterOrEquals', ['any', 'any'], 'boolean', 'Whether the first is larger or equal.', {
    sql: byCompiler,
  }),
  scalar('in', ['any', 'any'], 'boolean', 'Whether a value is among others.', {
    sql: byCompiler,
  }),
  scalar('notIn', ['any', 'any'], 'boolean', 'Whether a value is not among others.', {
    sql: byCompiler,
  }),
  scalar('like', ['string', 'string'], 'boolean', 'Whether a string matches a pattern with % and _.', {
    sql: byCompiler,
  }),
  scalar('ilike', ['string', 'string'], 'boolean', 'The same, case-insensitive.', {
    sql: byCompiler,
  }),
  scalar('notLike', ['string', 'string'], 'boolean', 'Whether a string does not match a pattern.', {
    sql: byCompiler,
  }),
  scalar('notILike', ['string', 'string'], 'boolean', 'The same, case-insensitive.', {
    sql: byCompiler,
  }),
  standardScalar('and', ['boolean', 'boolean', 'boolean...'], 'boolean', 'Whether all are true.', {
    sql: byCompiler,
  }),
  standardScalar('or', ['boolean', 'boolean', 'boolean...'], 'boolean', 'Whether any is true.', {
    sql: byCompiler,
  }),
  standardScalar(
    'xor',
    ['boolean', 'boolean', 'boolean...'],
    'boolean',
    'Whether an odd number of them is true.',
    {
      sql: conditionEmitters.xor,
    },
  ),
  standardScalar('not', ['boolean'], 'boolean', 'Whether it is false.', {
    sql: '(NOT $1)',
  }),
];
