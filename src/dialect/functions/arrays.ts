import { arraySliceEmitters } from './emit/array_slices.ts';
import { arrayEmitters } from './emit/arrays.ts';
import { byCompiler, scalar, type FunctionDefinition } from './function_definition.ts';

/** Functions of arrays. */
export const arrayFunctions: readonly FunctionDefinition[] = [
  scalar('array', ['T...'], 'array(T)', 'An array of the arguments.', {
    sql: arrayEmitters.array,
    cases: { 'array(1, 2, 3)': [1, 2, 3], "array('a', 'b')": ['a', 'b'], 'array(1, NULL)': [1, null] },
  }),
  scalar(
    'range',
    ['integer', 'integer?', 'integer?'],
    'array(integer)',
    'Integers from a start up to, but not including, an end.',
    {
      ranges: [{ index: 0, min: 0, argumentCount: 1 }],
      sql: arrayEmitters.range,
      cases: { 'range(5)': [0, 1, 2, 3, 4], 'range(0)': [], 'range(2, 5)': [2, 3, 4] },
    },
  ),
  scalar('has', ['array(T)', 'T'], 'boolean', 'Whether an array contains a value.', {
    sql: arrayEmitters.has,
    cases: { 'has([1, 2], 1)': true, 'has([1, 2], 3)': false },
  }),
  scalar('hasAll', ['array(T)', 'array(T)'], 'boolean', 'Whether an array contains all values of another.', {
    sql: arrayEmitters.hasAll,
    cases: { 'hasAll([1, 2, 3], [1, 2])': true, 'hasAll([1, 2], [3])': false },
  }),
  scalar('hasAny', ['array(T)', 'array(T)'], 'boolean', 'Whether an array contains any value of another.', {
    sql: arrayEmitters.hasAny,
    cases: { 'hasAny([1, 2, 3], [3, 4])': true, 'hasAny([1, 2], [3])': false },
  }),
  scalar('indexOf', ['array(T)', 'T'], 'integer', 'The index of a value, from 1; 0 if not found.', {
    sql: arrayEmitters.indexOf,
    cases: { 'indexOf([1, 2, 1], 1)': 1, 'indexOf([1, 2], 2)': 2, 'indexOf([1, 2], 3)': 0 },
  }),
  scalar('arrayConcat', ['array(T)', 'array(T)...'], 'array(T)', 'The arrays concatenated.', {
    sql: arrayEmitters.arrayConcat,
    cases: {
      'arrayConcat([1], [2])': [1, 2],
      'arrayConcat([1], [])': [1],
      "arrayConcat(['a'], ['b'], ['c'])": ['a', 'b', 'c'],
    },
  }),
  scalar('arrayElement', ['array(T)', 'integer'], 'T', 'The item at an index; from the end if negative.', {
    sql: arrayEmitters.arrayElement,
    cases: {
      'arrayElement([1, 2, 3], 1)': 1,
      'arrayElement([1, 2, 3], -1)': 3,
      'arrayElement([1, 2], 5)': 0,
    },
  }),
  scalar('arrayPushBack', ['array(T)', 'T'], 'array(T)', 'The array with an item appended.', {
    sql: arraySliceEmitters.arrayPushBack,
    cases: {
      'arrayPushBack([1, 2], 3)': [1, 2, 3],
      "arrayPushBack(['a'], 'b')": ['a', 'b'],
      'arrayPushBack([1], NULL)': [1, null],
    },
  }),
  scalar('arrayPushFront', ['array(T)', 'T'], 'array(T)', 'The array with an item prepended.', {
    sql: arraySliceEmitters.arrayPushFront,
    cases: {
      'arrayPushFront([1, 2], 3)': [3, 1, 2],
      "arrayPushFront(['a'], 'b')": ['b', 'a'],
      'arrayPushFront([1], NULL)': [null, 1],
    },
  }),
  scalar('arrayPopBack', ['array(T)'], 'array(T)', 'The array without its last item.', {
    sql: arraySliceEmitters.arrayPopBack,
    cases: { 'arrayPopBack([1, 2, 3])': [1, 2], 'arrayPopBack([])': [], 'arrayPopBack([1, NULL])': [1] },
  }),
  scalar('arrayPopFront', ['array(T)'], 'array(T)', 'The array without its first item.', {
    sql: arraySliceEmitters.arrayPopFront,
    cases: {
      'arrayPopFront([1, 2, 3])': [2, 3],
      'arrayPopFront([])': [],
      'arrayPopFront([1, NULL])': [null],
    },
  }),
  scalar('arraySlice', ['array(T)', 'integer', 'integer?'], 'array(T)', 'A part of an array.', {
    sql: arraySliceEmitters.arraySlice,
    cases: {
      'arraySlice([1, 2, 3, 4], 2)': [2, 3, 4],
      'arraySlice([1, 2, 3, 4], 2, 2)': [2, 3],
      'arraySlice([1, 2, 3, 4], -2)': [3, 4],
    },
  }),
  scalar('arrayReverse', ['array(T)'], 'array(T)', 'The array in reverse order.', {
    sql: arraySliceEmitters.arrayReverse,
    cases: {
      'arrayReverse([1, 2, 3])': [3, 2, 1],
      'arrayReverse([])': [],
      "arrayReverse(['a', 'b'])": ['b', 'a'],
    },
  }),
  scalar('arrayUniq', ['array(any)', 'array(any)...'], 'integer', 'Number of distinct items.', {
    sql: arrayEmitters.arrayUniq,
    cases: { 'arrayUniq([1, 2, 1])': 2, 'arrayUniq([])': 0, "arrayUniq(['a', 'a'])": 1 },
  }),
  scalar('arrayDistinct', ['array(T)'], 'array(T)', 'The distinct items of an array.', {
    sql: arrayEmitters.arrayDistinct,
    cases: {
      'arrayDistinct([1, 2, 1, 3])': [1, 2, 3],
      'arrayDistinct([])': [],
      "arrayDistinct(['a', 'b', 'a'])": ['a', 'b'],
    },
  }),
  scalar('arrayJoin', ['array(T)'], 'T', 'A row for each item.', {
    sql: byCompiler,
    cases: {
      'count() from (select arrayJoin([1, NULL]) as x) as given': 2,
      'arraySort(groupArray(x)) from (select arrayJoin([3, 1, 2]) as x) as given': [1, 2, 3],
      "arraySort(groupArray(x)) from (select arrayJoin(['b', 'a']) as x) as given": ['a', 'b'],
    },
  }),
  scalar('countEqual', ['array(T)', 'T'], 'integer', 'Number of items equal to a value.', {
    sql: arrayEmitters.countEqual,
    cases: { 'countEqual([1, 2, 1], 1)': 2, 'countEqual([1, NULL], NULL)': 1, "countEqual(['a'], 'b')": 0 },
  }),
  scalar('arrayDifference', ['array(number)'], 'array(number)', 'The differences between successive items.', {
    sql: arrayEmitters.arrayDifference,
    cases: {
      'arrayDifference([1, 4, 9])': [0, 3, 5],
      'arrayDifference([5])': [0],
      'arrayDifference([1.5, 1])': [0, -0.5],
    },
  }),
  scalar('arrayIntersect', ['array(T)', 'array(T)...'], 'array(T)', 'The items common to all arrays.', {
    sql: arrayEmitters.arrayIntersect,
    cases: {
      'arrayIntersect([1, 2], [2, 3])': [2],
      'arrayIntersect([1], [2])': [],
      "arrayIntersect(['a', 'b'], ['b'], ['b', 'c'])": ['b'],
    },
  }),
  scalar('arrayFlatten', ['array(any)'], 'array(any)', 'The items of nested arrays.', {
    sql: arrayEmitters.arrayFlatten,
    cases: {
      'arrayFlatten([[1, 2], [3]])': [1, 2, 3],
      'arrayFlatten([1, 2])': [1, 2],
      'arrayFlatten([[1], []])': [1],
    },
  }),
  scalar('arrayCompact', ['array(T)'], 'array(T)', 'The array without consecutive duplicates.', {
    sql: arrayEmitters.arrayCompact,
    cases: {
      'arrayCompact([1, 1, 2, 2, 1])': [1, 2, 1],
      'arrayCompact([])': [],
      "arrayCompact(['a', 'a', 'b'])": ['a', 'b'],
    },
  }),
  scalar(
    'arrayZip',
    ['array(any)', 'array(any)...'],
    'array(tuple)',
    'Tuples of the items at the same index.',
    {
      sql: arrayEmitters.arrayZip,
      cases: {
        "arrayZip([1, 2], ['a', 'b'])": [
          [1, 'a'],
          [2, 'b'],
        ],
        "arrayZip(['a'], [1.5])": [['a', 1.5]],
        'arrayZip([1, 2], [3, 4], [5, 6])': [
          [1, 3, 5],
          [2, 4, 6],
        ],
      },
    },
  ),
  scalar('arrayWithConstant', ['integer', 'T'], 'array(T)', 'An array that repeats a value.', {
    ranges: [{ index: 0, min: 0 }],
    sql: arrayEmitters.arrayWithConstant,
    cases: {
      'arrayWithConstant(3, 1)': [1, 1, 1],
      "arrayWithConstant(0, 'a')": [],
      "arrayWithConstant(2, 'a')": ['a', 'a'],
    },
  }),
  scalar('arrayEnumerate', ['array(any)'], 'array(integer)', 'The indexes of an array.', {
    sql: arrayEmitters.arrayEnumerate,
    cases: {
      'arrayEnumerate([10, 20, 30])': [1, 2, 3],
      'arrayEnumerate([])': [],
      "arrayEnumerate(['a'])": [1],
    },
  }),
  scalar('arrayStringConcat', ['array(any)', 'string?'], 'string', 'The items as one string.', {
    sql: arrayEmitters.arrayStringConcat,
    cases: {
      "arrayStringConcat(['a', 'b'])": 'ab',
      "arrayStringConcat(['a', 'b'], ',')": 'a,b',
      "arrayStringConcat([], ',')": '',
    },
  }),
];
