import { conditionEmitters } from '../compile/functions/conditions.ts';
import { scalar, standardScalar, type FunctionDefinition } from './function_definition.ts';

/** Conditional and null functions. */
export const conditionFunctions: readonly FunctionDefinition[] = [
  standardScalar('if', ['boolean', 'T', 'T'], 'T', 'One of two values.', {
    sql: conditionEmitters.if,
  }),
  scalar(
    'multiIf',
    ['boolean', 'T', 'any...'],
    'T',
    'The value of the first true condition, or the last value.',
    {
      sql: conditionEmitters.multiIf,
    },
  ),
  scalar('transform', ['T', 'array(T)', 'array(U)', 'U?'], 'U', 'A value mapped by two arrays.', {
    sql: conditionEmitters.transform,
  }),
  scalar('isNull', ['any'], 'boolean', 'Whether a value is null.', {
    sql: '($1 IS NULL)',
  }),
  scalar('isNotNull', ['any'], 'boolean', 'Whether a value is not null.', {
    sql: '($1 IS NOT NULL)',
  }),
  standardScalar('coalesce', ['T', 'T...'], 'T', 'The first non-null value.', {
    sql: conditionEmitters.coalesce,
  }),
  standardScalar('ifNull', ['T', 'T'], 'T', 'The first value, or the second if it is null.', {
    sql: conditionEmitters.ifNull,
  }),
  standardScalar('nullIf', ['T', 'T'], 'T', 'Null if both are equal, else the first.', {
    sql: conditionEmitters.nullIf,
  }),
  scalar('assumeNotNull', ['T'], 'T', 'The value, or a default of its type if it is null.', {
    sql: conditionEmitters.assumeNotNull,
  }),
  scalar('toNullable', ['T'], 'T', 'The value, as nullable.', {
    sql: conditionEmitters.toNullable,
  }),
];
