import { higherOrder, unsupported, scalar, type FunctionDefinition, type ValueType } from './definition.ts';

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
    'Numbers from one up to before another.',
  ),
  scalar('has', ['array(T)', 'T'], 'boolean', 'Whether an array has a value.'),
  scalar('hasAll', ['array(T)', 'array(T)'], 'boolean', 'Whether an array has all values of another.'),
  scalar('hasAny', ['array(T)', 'array(T)'], 'boolean', 'Whether an array has any value of another.'),
  scalar('indexOf', ['array(T)', 'T'], 'integer', 'Where a value is, from one; 0 if nowhere.'),
  scalar('arrayConcat', ['array(T)', 'array(T)...'], 'array(T)', 'Arrays one behind the other.'),
  scalar('arrayElement', ['array(T)', 'integer'], 'T', 'The item at a place; from the end if negative.'),
  scalar('arrayPushBack', ['array(T)', 'T'], 'array(T)', 'An array with one more item at its end.'),
  scalar('arrayPushFront', ['array(T)', 'T'], 'array(T)', 'An array with one more item at its begin.'),
  scalar('arrayPopBack', ['array(T)'], 'array(T)', 'An array without its last item.'),
  scalar('arrayPopFront', ['array(T)'], 'array(T)', 'An array without its first item.'),
  scalar('arraySlice', ['array(T)', 'integer', 'integer?'], 'array(T)', 'A part of an array.'),
  optionalLambda('arraySort', 'array(T)', 'An array from the smallest item to the largest.'),
  optionalLambda('arrayReverseSort', 'array(T)', 'An array from the largest item to the smallest.'),
  scalar('arrayReverse', ['array(T)'], 'array(T)', 'An array backwards.'),
  scalar('arrayUniq', ['array(any)', 'array(any)...'], 'integer', 'Different items.'),
  scalar('arrayDistinct', ['array(T)'], 'array(T)', 'An array with each item once.'),
  scalar('arrayJoin', ['array(T)'], 'T', 'A row for each item.'),
  withLambda('arrayMap', 'array(any)', 'What a lambda makes of each item.'),
  withLambda('arrayFilter', 'array(T)', 'The items for which a lambda holds.'),
  optionalLambda('arrayExists', 'boolean', 'Whether a lambda holds for any item.'),
  optionalLambda('arrayAll', 'boolean', 'Whether a lambda holds for all items.'),
  withLambda('arrayFirst', 'T', 'The first item for which a lambda holds.'),
  withLambda('arrayLast', 'T', 'The last item for which a lambda holds.'),
  withLambda('arrayFirstIndex', 'integer', 'Where the first such item is.'),
  withLambda('arrayLastIndex', 'integer', 'Where the last such item is.'),
  optionalLambda('arrayCount', 'integer', 'Items for which a lambda holds.'),
  scalar('countEqual', ['array(T)', 'T'], 'integer', 'Items equal to a value.'),
  optionalLambda('arraySum', 'number', 'The sum of the items.'),
  optionalLambda('arrayAvg', 'float', 'The mean of the items.'),
  optionalLambda('arrayMin', 'any', 'The smallest item.'),
  optionalLambda('arrayMax', 'any', 'The largest item.'),
  optionalLambda('arrayProduct', 'float', 'The product of the items.'),
  optionalLambda('arrayCumSum', 'array(number)', 'The sums up to each item.'),
  scalar('arrayDifference', ['array(number)'], 'array(number)', 'Each item less the one before.'),
  scalar('arrayIntersect', ['array(T)', 'array(T)...'], 'array(T)', 'The items that all arrays have.'),
  scalar('arrayFlatten', ['array(any)'], 'array(any)', 'The items of arrays in an array.'),
  scalar('arrayCompact', ['array(T)'], 'array(T)', 'An array without repeated neighbours.'),
  scalar(
    'arrayZip',
    ['array(any)', 'array(any)...'],
    'array(tuple)',
    'Tuples of the items at the same place.',
  ),
  higherOrder(
    'arrayFold',
    ['lambda', 'array(any)', 'any', 'any...'],
    'any',
    'What a lambda makes of all items in turn.',
  ),
  withLambda('arrayFill', 'array(T)', 'Items for which a lambda does not hold replaced by the one before.'),
  scalar('arrayWithConstant', ['integer', 'T'], 'array(T)', 'An array of one value several times.'),
  scalar('arrayEnumerate', ['array(any)'], 'array(integer)', 'The places of an array.'),
  scalar('arrayStringConcat', ['array(any)', 'string?'], 'string', 'The items as one text.'),
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
    'A map of an array of keys and one of values.',
  ),
  scalar('mapKeys', ['map'], 'array(any)', 'The keys of a map.'),
  scalar('mapValues', ['map'], 'array(any)', 'The values of a map.'),
  scalar('mapContains', ['map', 'any'], 'boolean', 'Whether a map has a key.'),
];
