import {
  higherOrder,
  unsupported,
  scalar,
  type FunctionDefinition,
  type ValueType,
} from './function_definition.ts';

const withLambda = (name: string, returns: ValueType, description: string): FunctionDefinition =>
  higherOrder(name, ['lambda', 'array(T)', 'array(any)...'], returns, description);
const optionalLambda = (name: string, returns: ValueType, description: string): FunctionDefinition =>
  higherOrder(name, ['any', 'array(any)...'], returns, description);

/**
 * Array, tuple and map functions. `optionalLambda` marks those whose lambda may be omitted; the array then comes
 * first.
 */
export const arrayFunctions: readonly FunctionDefinition[] = [
  scalar('array', ['T...'], 'array(T)', 'An array of the arguments.'),
  scalar(
    'range',
    ['integer', 'integer?', 'integer?'],
    'array(integer)',
    'Integers from a start up to, but not including, an end.',
  ),
  scalar('has', ['array(T)', 'T'], 'boolean', 'Whether an array contains a value.'),
  scalar('hasAll', ['array(T)', 'array(T)'], 'boolean', 'Whether an array contains all values of another.'),
  scalar('hasAny', ['array(T)', 'array(T)'], 'boolean', 'Whether an array contains any value of another.'),
  scalar('indexOf', ['array(T)', 'T'], 'integer', 'The index of a value, from 1; 0 if not found.'),
  scalar('arrayConcat', ['array(T)', 'array(T)...'], 'array(T)', 'The arrays concatenated.'),
  scalar('arrayElement', ['array(T)', 'integer'], 'T', 'The item at an index; from the end if negative.'),
  scalar('arrayPushBack', ['array(T)', 'T'], 'array(T)', 'The array with an item appended.'),
  scalar('arrayPushFront', ['array(T)', 'T'], 'array(T)', 'The array with an item prepended.'),
  scalar('arrayPopBack', ['array(T)'], 'array(T)', 'The array without its last item.'),
  scalar('arrayPopFront', ['array(T)'], 'array(T)', 'The array without its first item.'),
  scalar('arraySlice', ['array(T)', 'integer', 'integer?'], 'array(T)', 'A part of an array.'),
  optionalLambda('arraySort', 'array(T)', 'The array in ascending order.'),
  optionalLambda('arrayReverseSort', 'array(T)', 'The array in descending order.'),
  scalar('arrayReverse', ['array(T)'], 'array(T)', 'The array in reverse order.'),
  scalar('arrayUniq', ['array(any)', 'array(any)...'], 'integer', 'Number of distinct items.'),
  scalar('arrayDistinct', ['array(T)'], 'array(T)', 'The distinct items of an array.'),
  scalar('arrayJoin', ['array(T)'], 'T', 'A row for each item.'),
  withLambda('arrayMap', 'array(any)', 'The results of a lambda for each item.'),
  withLambda('arrayFilter', 'array(T)', 'The items that satisfy a lambda.'),
  optionalLambda('arrayExists', 'boolean', 'Whether any item satisfies a lambda.'),
  optionalLambda('arrayAll', 'boolean', 'Whether all items satisfy a lambda.'),
  withLambda('arrayFirst', 'T', 'The first item that satisfies a lambda.'),
  withLambda('arrayLast', 'T', 'The last item that satisfies a lambda.'),
  withLambda('arrayFirstIndex', 'integer', 'The index of the first item that satisfies a lambda.'),
  withLambda('arrayLastIndex', 'integer', 'The index of the last item that satisfies a lambda.'),
  optionalLambda('arrayCount', 'integer', 'Number of items that satisfy a lambda.'),
  scalar('countEqual', ['array(T)', 'T'], 'integer', 'Number of items equal to a value.'),
  optionalLambda('arraySum', 'number', 'The sum of the items.'),
  optionalLambda('arrayAvg', 'float', 'The mean of the items.'),
  optionalLambda('arrayMin', 'any', 'The smallest item.'),
  optionalLambda('arrayMax', 'any', 'The largest item.'),
  optionalLambda('arrayProduct', 'float', 'The product of the items.'),
  optionalLambda('arrayCumSum', 'array(number)', 'The running sums.'),
  scalar('arrayDifference', ['array(number)'], 'array(number)', 'The differences between successive items.'),
  scalar('arrayIntersect', ['array(T)', 'array(T)...'], 'array(T)', 'The items common to all arrays.'),
  scalar('arrayFlatten', ['array(any)'], 'array(any)', 'The items of nested arrays.'),
  scalar('arrayCompact', ['array(T)'], 'array(T)', 'The array without consecutive duplicates.'),
  scalar(
    'arrayZip',
    ['array(any)', 'array(any)...'],
    'array(tuple)',
    'Tuples of the items at the same index.',
  ),
  higherOrder(
    'arrayFold',
    ['lambda', 'array(any)', 'any', 'any...'],
    'any',
    'The result of applying a lambda to all items in turn.',
  ),
  withLambda(
    'arrayFill',
    'array(T)',
    'The array with items that do not satisfy a lambda replaced by the preceding one.',
  ),
  scalar('arrayWithConstant', ['integer', 'T'], 'array(T)', 'An array that repeats a value.'),
  scalar('arrayEnumerate', ['array(any)'], 'array(integer)', 'The indexes of an array.'),
  scalar('arrayStringConcat', ['array(any)', 'string?'], 'string', 'The items as one string.'),
  scalar('tuple', ['any...'], 'tuple', 'A tuple of the arguments.'),
  scalar('tupleElement', ['tuple', 'any', 'any?'], 'any', 'An element of a tuple.'),
  unsupported(
    scalar('untuple', ['tuple'], 'any', 'The elements of a tuple as columns.'),
    'Select the elements: t.1, t.2.',
  ),
  scalar('map', ['any...'], 'map', 'A map of keys and values.'),
  scalar(
    'mapFromArrays',
    ['array(any)', 'array(any)'],
    'map',
    'A map from an array of keys and an array of values.',
  ),
  scalar('mapKeys', ['map'], 'array(any)', 'The keys of a map.'),
  scalar('mapValues', ['map'], 'array(any)', 'The values of a map.'),
  scalar('mapContains', ['map', 'any'], 'boolean', 'Whether a map contains a key.'),
];
