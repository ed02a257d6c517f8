import { scalar, standardScalar, type FunctionDefinition } from './function_definition.ts';

const compare = (name: string, description: string): FunctionDefinition =>
  scalar(name, ['any', 'any'], 'boolean', description);
const match = (name: string, description: string): FunctionDefinition =>
  scalar(name, ['string', 'string'], 'boolean', description);

/** Comparison, logic, conditional and null functions. */
export const conditionFunctions: readonly FunctionDefinition[] = [
  compare('equals', 'Whether two values are equal.'),
  compare('notEquals', 'Whether two values differ.'),
  compare('less', 'Whether the first is smaller.'),
  compare('greater', 'Whether the first is larger.'),
  compare('lessOrEquals', 'Whether the first is smaller or equal.'),
  compare('greaterOrEquals', 'Whether the first is larger or equal.'),
  compare('in', 'Whether a value is among others.'),
  compare('notIn', 'Whether a value is not among others.'),
  match('like', 'Whether a string matches a pattern with % and _.'),
  match('ilike', 'The same, case-insensitive.'),
  match('notLike', 'Whether a string does not match a pattern.'),
  match('notILike', 'The same, case-insensitive.'),
  standardScalar('and', ['boolean', 'boolean', 'boolean...'], 'boolean', 'Whether all are true.'),
  standardScalar('or', ['boolean', 'boolean', 'boolean...'], 'boolean', 'Whether any is true.'),
  standardScalar(
    'xor',
    ['boolean', 'boolean', 'boolean...'],
    'boolean',
    'Whether an odd number of them is true.',
  ),
  standardScalar('not', ['boolean'], 'boolean', 'Whether it is false.', '(NOT $1)'),
  standardScalar('if', ['boolean', 'T', 'T'], 'T', 'One of two values.'),
  scalar(
    'multiIf',
    ['boolean', 'T', 'any...'],
    'T',
    'The value of the first true condition, or the last value.',
  ),
  scalar('transform', ['T', 'array(T)', 'array(U)', 'U?'], 'U', 'A value mapped by two arrays.'),
  scalar('isNull', ['any'], 'boolean', 'Whether a value is null.', '($1 IS NULL)'),
  scalar('isNotNull', ['any'], 'boolean', 'Whether a value is not null.', '($1 IS NOT NULL)'),
  standardScalar('coalesce', ['T', 'T...'], 'T', 'The first non-null value.'),
  standardScalar('ifNull', ['T', 'T'], 'T', 'The first value, or the second if it is null.'),
  standardScalar('nullIf', ['T', 'T'], 'T', 'Null if both are equal, else the first.'),
  scalar('assumeNotNull', ['T'], 'T', 'The value, or a default of its type if it is null.'),
  scalar('toNullable', ['T'], 'T', 'The value, as nullable.'),
];
