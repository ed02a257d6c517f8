import { scalar, standardScalar, type FunctionDefinition } from './definition.ts';

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
  compare('lessOrEquals', 'Whether the first is not larger.'),
  compare('greaterOrEquals', 'Whether the first is not smaller.'),
  compare('in', 'Whether a value is among others.'),
  compare('notIn', 'Whether a value is not among others.'),
  match('like', 'Whether a text fits a pattern with % and _.'),
  match('ilike', 'The same without regard to case.'),
  match('notLike', 'Whether a text does not fit a pattern.'),
  match('notILike', 'The same without regard to case.'),
  standardScalar('and', ['boolean', 'boolean', 'boolean...'], 'boolean', 'Whether all hold.'),
  standardScalar('or', ['boolean', 'boolean', 'boolean...'], 'boolean', 'Whether any holds.'),
  standardScalar('xor', ['boolean', 'boolean', 'boolean...'], 'boolean', 'Whether an odd number holds.'),
  standardScalar('not', ['boolean'], 'boolean', 'Whether it does not hold.', '(NOT $1)'),
  standardScalar('if', ['boolean', 'T', 'T'], 'T', 'One of two values.'),
  scalar(
    'multiIf',
    ['boolean', 'T', 'any...'],
    'T',
    'The value behind the first condition that holds, or the last.',
  ),
  scalar('transform', ['T', 'array(T)', 'array(U)', 'U?'], 'U', 'A value translated by two arrays.'),
  scalar('isNull', ['any'], 'boolean', 'Whether a value is null.', '($1 IS NULL)'),
  scalar('isNotNull', ['any'], 'boolean', 'Whether a value is not null.', '($1 IS NOT NULL)'),
  standardScalar('coalesce', ['T', 'T...'], 'T', 'The first value that is not null.'),
  standardScalar('ifNull', ['T', 'T'], 'T', 'The first value, or the second if it is null.'),
  standardScalar('nullIf', ['T', 'T'], 'T', 'Null if both are equal, or the first.'),
  scalar('assumeNotNull', ['T'], 'T', 'The value; a default of its type where it is null.'),
  scalar('toNullable', ['T'], 'T', 'The value.'),
];
