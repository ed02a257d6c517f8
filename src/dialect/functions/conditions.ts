import { conditionEmitters } from '../compile/functions/conditions.ts';
import { scalar, standardScalar, type FunctionDefinition } from './function_definition.ts';

/** Conditional and null functions. */
export const conditionFunctions: readonly FunctionDefinition[] = [
  standardScalar('if', ['boolean', 'T', 'T'], 'T', 'One of two values.', {
    sql: conditionEmitters.if,
    cases: { "if(1, 'a', 'b')": 'a', "if(0, 'a', 'b')": 'b', 'if(1, 2, 3.5)': 2 },
  }),
  scalar(
    'multiIf',
    ['boolean', 'T', 'any...'],
    'T',
    'The value of the first true condition, or the last value.',
    {
      sql: conditionEmitters.multiIf,
      cases: {
        "multiIf(1, 'a', 'b')": 'a',
        "multiIf(0, 'a', 1, 'b', 'c')": 'b',
        "multiIf(0, 'a', 0, 'b', 'c')": 'c',
      },
    },
  ),
  scalar('transform', ['T', 'array(T)', 'array(U)', 'U?'], 'U', 'A value mapped by two arrays.', {
    sql: conditionEmitters.transform,
    cases: {
      "transform(1, [1, 2], ['a', 'b'], 'c')": 'a',
      "transform(3, [1, 2], ['a', 'b'], 'c')": 'c',
      "transform('x', ['x', 'y'], ['1', '2'], '')": '1',
    },
  }),
  scalar('isNull', ['any'], 'boolean', 'Whether a value is null.', {
    sql: '($1 IS NULL)',
    cases: { 'isNull(1)': false, 'isNull(NULL)': true },
  }),
  scalar('isNotNull', ['any'], 'boolean', 'Whether a value is not null.', {
    sql: '($1 IS NOT NULL)',
    cases: { 'isNotNull(1)': true, 'isNotNull(NULL)': false },
  }),
  standardScalar('coalesce', ['T', 'T...'], 'T', 'The first non-null value.', {
    sql: conditionEmitters.coalesce,
    cases: { 'coalesce(1, 2)': 1, 'coalesce(NULL, 2)': 2, 'coalesce(NULL, NULL, 3)': 3 },
  }),
  standardScalar('ifNull', ['T', 'T'], 'T', 'The first value, or the second if it is null.', {
    sql: conditionEmitters.ifNull,
    cases: { 'ifNull(1, 2)': 1, 'ifNull(NULL, 2)': 2, "ifNull(nullIf('a', 'a'), 'b')": 'b' },
  }),
  standardScalar('nullIf', ['T', 'T'], 'T', 'Null if both are equal, else the first.', {
    sql: conditionEmitters.nullIf,
    cases: { 'nullIf(1, 1)': null, 'nullIf(1, 2)': 1, "nullIf('', 'a')": '' },
  }),
  scalar('assumeNotNull', ['T'], 'T', 'The value, or a default of its type if it is null.', {
    sql: conditionEmitters.assumeNotNull,
    cases: {
      'assumeNotNull(1)': 1,
      'assumeNotNull(nullIf(5, 5) + 0)': 0,
      "assumeNotNull(nullIf('a', 'b'))": 'a',
    },
  }),
  scalar('toNullable', ['T'], 'T', 'The value, as nullable.', {
    sql: conditionEmitters.toNullable,
    cases: { 'toNullable(1)': 1, "toNullable('a')": 'a', 'toNullable(NULL)': null },
  }),
];
