import { arraySliceEmitters } from './emit/array_slices.ts';
import { arrayEmitters } from './emit/arrays.ts';
import { byCompiler, scalar, type FunctionDefinition } from './function_definition.ts';

/** Functions of arrays. */
export const arrayFunctions: readonly FunctionDefinition[] = [
  scalar('array', ['T...'], 'array(T)', 'An array of the arguments.', {
    sql: arrayEmitters.array,
  }),
  scalar(
    'range',
    ['integer', 'integer?', 'integer?'],
    'array(integer)',
    'Integers from a start up to, but not including, an end.',
    {
      ranges: [{ index: 0, min: 0, argumentCount: 1 }],
      sql: arrayEmitters.range,
    },
  ),
  scalar('has', ['array(T)', 'T'], 'boolean', 'Whether an array contains a value.', {
    sql: arrayEmitters.has,
  }),
  scalar('hasAll', ['array(T)', 'array(T)'], 'boolean', 'Whether an array contains all values of another.', {
    sql: arrayEmitters.hasAll,
  }),
  scalar('hasAny', ['array(T)', 'array(T)'], 'boolean', 'Whether an array contains any value of another.', {
    sql: arrayEmitters.hasAny,
  }),
  scalar('indexOf', ['array(T)', 'T'], 'integer', 'The index of a value, from 1; 0 if not found.', {
    sql: arrayEmitters.indexOf,
  }),
  scalar('arrayConcat', ['array(T)', 'array(T)...'], 'array(T)', 'The arrays concatenated.', {
    sql: arrayEmitters.arrayConcat,
  }),
  scalar('arrayElement', ['array(T)', 'integer'], 'T', 'The item at an index; from the end if negative.', {
    sql: arrayEmitters.arrayElement,
  }),
  scalar('arrayPushBack', ['array(T)', 'T'], 'array(T)', 'The array with an item appended.', {
    sql: arraySliceEmitters.arrayPushBack,
  }),
  scalar('arrayPushFront', ['array(T)', 'T'], 'array(T)', 'The array with an item prepended.', {
    sql: arraySliceEmitters.arrayPushFront,
  }),
  scalar('arrayPopBack', ['array(T)'], 'array(T)', 'The array without its last item.', {
    sql: arraySliceEmitters.arrayPopBack,
  }),
  scalar('arrayPopFront', ['array(T)'], 'array(T)', 'The array without its first item.', {
    sql: arraySliceEmitters.arrayPopFront,
  }),
  scalar('arraySlice', ['array(T)', 'integer', 'integer?'], 'array(T)', 'A part of an array.', {
    sql: arraySliceEmitters.arraySlice,
  }),
  scalar('arrayReverse', ['array(T)'], 'array(T)', 'The array in reverse order.', {
    sql: arraySliceEmitters.arrayReverse,
  }),
  scalar('arrayUniq', ['array(any)', 'array(any)...'], 'integer', 'Number of distinct items.', {
    sql: arrayEmitters.arrayUniq,
  }),
  scalar('arrayDistinct', ['array(T)'], 'array(T)', 'The distinct items of an array.', {
    sql: arrayEmitters.arrayDistinct,
  }),
  scalar('arrayJoin', ['array(T)'], 'T', 'A row for each item.', {
    sql: byCompiler,
  }),
  scalar('countEqual', ['array(T)', 'T'], 'integer', 'Number of items equal to a value.', {
    sql: arrayEmitters.countEqual,
  }),
  scalar('arrayDifference', ['array(number)'], 'array(number)', 'The differences between successive items.', {
    sql: arrayEmitters.arrayDifference,
  }),
  scalar('arrayIntersect', ['array(T)', 'array(T)...'], 'array(T)', 'The items common to all arrays.', {
    sql: arrayEmitters.arrayIntersect,
  }),
  scalar('arrayFlatten', ['array(any)'], 'array(any)', 'The items of nested arrays.', {
    sql: arrayEmitters.arrayFlatten,
  }),
  scalar('arrayCompact', ['array(T)'], 'array(T)', 'The array without consecutive duplicates.', {
    sql: arrayEmitters.arrayCompact,
  }),
  scalar(
    'arrayZip',
    ['array(any)', 'array(any)...'],
    'array(tuple)',
    'Tuples of the items at the same index.',
    {
      sql: arrayEmitters.arrayZip,
    },
  ),
  scalar('arrayWithConstant', ['integer', 'T'], 'array(T)', 'An array that repeats a value.', {
    ranges: [{ index: 0, min: 0 }],
    sql: arrayEmitters.arrayWithConstant,
  }),
  scalar('arrayEnumerate', ['array(any)'], 'array(integer)', 'The indexes of an array.', {
    sql: arrayEmitters.arrayEnumerate,
  }),
  scalar('arrayStringConcat', ['array(any)', 'string?'], 'string', 'The items as one string.', {
    sql: arrayEmitters.arrayStringConcat,
  }),
];
