import { lambdaEmitters } from '../compile/functions/higher_order.ts';
import { byCompiler, higherOrder, type FunctionDefinition } from './function_definition.ts';

/** Array functions that take a lambda. Those whose first argument is `any` also take only the array. */
export const lambdaFunctions: readonly FunctionDefinition[] = [
  higherOrder('arraySort', ['any', 'array(any)...'], 'array(T)', 'The array in ascending order.', {
    sql: lambdaEmitters.arraySort,
    cases: {
      'arraySort([3, 1, 2])': [1, 2, 3],
      "arraySort(['b', 'a', 'B'])": ['B', 'a', 'b'],
      'arraySort([])': [],
    },
  }),
  higherOrder('arrayReverseSort', ['any', 'array(any)...'], 'array(T)', 'The array in descending order.', {
    sql: lambdaEmitters.arrayReverseSort,
    cases: {
      'arrayReverseSort([3, 1, 2])': [3, 2, 1],
      "arrayReverseSort(['b', 'a', 'B'])": ['b', 'a', 'B'],
      'arrayReverseSort([])': [],
    },
  }),
  higherOrder(
    'arrayMap',
    ['lambda', 'array(T)', 'array(any)...'],
    'array(any)',
    'The results of a lambda for each item.',
    {
      sql: lambdaEmitters.arrayMap,
      cases: {
        'arrayMap(x -> x + 1, [1, 2, 3])': [2, 3, 4],
        "arrayMap(x -> concat(x, '!'), ['a', 'b'])": ['a!', 'b!'],
        'arrayMap((x, y) -> x + y, [1, 2], [10, 20])': [11, 22],
      },
    },
  ),
  higherOrder(
    'arrayFilter',
    ['lambda', 'array(T)', 'array(any)...'],
    'array(T)',
    'The items that satisfy a lambda.',
    {
      sql: lambdaEmitters.arrayFilter,
      cases: {
        'arrayFilter(x -> x > 1, [1, 2, 3])': [2, 3],
        "arrayFilter(x -> x = 'a', ['a', 'b'])": ['a'],
        'arrayFilter(x -> x > 1, [])': [],
      },
    },
  ),
  higherOrder('arrayExists', ['any', 'array(any)...'], 'boolean', 'Whether any item satisfies a lambda.', {
    sql: lambdaEmitters.arrayExists,
    cases: { 'arrayExists(x -> x > 2, [1, 2, 3])': true, 'arrayExists(x -> x > 5, [1, 2])': false },
  }),
  higherOrder('arrayAll', ['any', 'array(any)...'], 'boolean', 'Whether all items satisfy a lambda.', {
    sql: lambdaEmitters.arrayAll,
    cases: { 'arrayAll(x -> x > 0, [1, 2, 3])': true, 'arrayAll(x -> x > 1, [1, 2])': false },
  }),
  higherOrder(
    'arrayFirst',
    ['lambda', 'array(T)', 'array(any)...'],
    'T',
    'The first item that satisfies a lambda.',
    {
      sql: lambdaEmitters.arrayFirst,
      cases: {
        'arrayFirst(x -> x > 1, [1, 2, 3])': 2,
        'arrayFirst(x -> x > 5, [1, 2])': 0,
        "arrayFirst(x -> x != 'a', ['a', 'b'])": 'b',
      },
    },
  ),
  higherOrder(
    'arrayLast',
    ['lambda', 'array(T)', 'array(any)...'],
    'T',
    'The last item that satisfies a lambda.',
    {
      sql: lambdaEmitters.arrayLast,
      cases: {
        'arrayLast(x -> x > 1, [1, 2, 3])': 3,
        'arrayLast(x -> x > 5, [1, 2])': 0,
        "arrayLast(x -> x != 'a', ['a', 'b', 'c'])": 'c',
      },
    },
  ),
  higherOrder(
    'arrayFirstIndex',
    ['lambda', 'array(T)', 'array(any)...'],
    'integer',
    'The index of the first item that satisfies a lambda.',
    {
      sql: lambdaEmitters.arrayFirstIndex,
      cases: { 'arrayFirstIndex(x -> x > 1, [1, 2, 3])': 2, 'arrayFirstIndex(x -> x > 5, [1, 2])': 0 },
    },
  ),
  higherOrder(
    'arrayLastIndex',
    ['lambda', 'array(T)', 'array(any)...'],
    'integer',
    'The index of the last item that satisfies a lambda.',
    {
      sql: lambdaEmitters.arrayLastIndex,
      cases: { 'arrayLastIndex(x -> x > 1, [1, 2, 3])': 3, 'arrayLastIndex(x -> x > 5, [1, 2])': 0 },
    },
  ),
  higherOrder('arrayCount', ['any', 'array(any)...'], 'integer', 'Number of items that satisfy a lambda.', {
    sql: lambdaEmitters.arrayCount,
    cases: { 'arrayCount(x -> x > 1, [1, 2, 3])': 2, 'arrayCount(x -> x > 1, [])': 0 },
  }),
  higherOrder('arraySum', ['any', 'array(any)...'], 'number', 'The sum of the items.', {
    sql: lambdaEmitters.arraySum,
    cases: { 'arraySum([1, 2, 3])': 6, 'arraySum([1.5, 2])': 3.5, 'arraySum(x -> x > 1, [1, 2, 3])': 2 },
  }),
  higherOrder('arrayAvg', ['any', 'array(any)...'], 'float', 'The mean of the items.', {
    sql: lambdaEmitters.arrayAvg,
    cases: { 'arrayAvg([1, 2, 3])': 2, 'arrayAvg([1.5])': 1.5, 'arrayAvg(x -> x * 2, [1, 2])': 3 },
  }),
  higherOrder('arrayMin', ['any', 'array(any)...'], 'any', 'The smallest item.', {
    sql: lambdaEmitters.arrayMin,
    cases: { 'arrayMin([3, 1, 2])': 1, "arrayMin(['b', 'a'])": 'a', 'arrayMin([1.5, -2])': -2 },
  }),
  higherOrder('arrayMax', ['any', 'array(any)...'], 'any', 'The largest item.', {
    sql: lambdaEmitters.arrayMax,
    cases: { 'arrayMax([3, 1, 2])': 3, "arrayMax(['b', 'a'])": 'b', 'arrayMax([1.5, -2])': 1.5 },
  }),
  higherOrder('arrayProduct', ['any', 'array(any)...'], 'float', 'The product of the items.', {
    sql: lambdaEmitters.arrayProduct,
    cases: { 'arrayProduct([1, 2, 3])': 6, 'arrayProduct([2, -3])': -6, 'arrayProduct([0, 5])': 0 },
  }),
  higherOrder('arrayCumSum', ['any', 'array(any)...'], 'array(number)', 'The running sums.', {
    sql: lambdaEmitters.arrayCumSum,
    cases: {
      'arrayCumSum([1, 2, 3])': [1, 3, 6],
      'arrayCumSum([1.5, 2])': [1.5, 3.5],
      'arrayCumSum(x -> x * 2, [1, 2])': [2, 6],
    },
  }),
  higherOrder(
    'arrayFold',
    ['lambda', 'array(any)', 'any', 'any...'],
    'any',
    'The result of applying a lambda to all items in turn.',
    {
      sql: byCompiler,
      cases: {
        'arrayFold(acc, x -> acc + x, [1, 2, 3], toInt64(0))': 6,
        "arrayFold(acc, x -> concat(acc, x), ['a', 'b'], '')": 'ab',
        'arrayFold(acc, x, y -> acc + x * y, [1, 2], [3, 4], toInt64(0))': 11,
      },
    },
  ),
  higherOrder(
    'arrayFill',
    ['lambda', 'array(T)', 'array(any)...'],
    'array(T)',
    'The array with items that do not satisfy a lambda replaced by the preceding one.',
    {
      sql: lambdaEmitters.arrayFill,
      cases: {
        'arrayFill(x -> x > 1, [1, 2, 0, 3, 1])': [1, 2, 2, 3, 3],
        'arrayFill(x -> not isNull(x), [1, NULL, 2, NULL])': [1, 1, 2, 2],
        'arrayFill(x -> x > 1, [])': [],
      },
    },
  ),
];
