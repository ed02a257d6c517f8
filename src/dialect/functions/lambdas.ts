import { lambdaEmitters } from '../compile/functions/higher_order.ts';
import { byCompiler, higherOrder, type FunctionDefinition } from './function_definition.ts';

/** Array functions that take a lambda. Those whose first argument is `any` also take only the array. */
export const lambdaFunctions: readonly FunctionDefinition[] = [
  higherOrder('arraySort', ['any', 'array(any)...'], 'array(T)', 'The array in ascending order.', {
    sql: lambdaEmitters.arraySort,
  }),
  higherOrder('arrayReverseSort', ['any', 'array(any)...'], 'array(T)', 'The array in descending order.', {
    sql: lambdaEmitters.arrayReverseSort,
  }),
  higherOrder(
    'arrayMap',
    ['lambda', 'array(T)', 'array(any)...'],
    'array(any)',
    'The results of a lambda for each item.',
    {
      sql: lambdaEmitters.arrayMap,
    },
  ),
  higherOrder(
    'arrayFilter',
    ['lambda', 'array(T)', 'array(any)...'],
    'array(T)',
    'The items that satisfy a lambda.',
    {
      sql: lambdaEmitters.arrayFilter,
    },
  ),
  higherOrder('arrayExists', ['any', 'array(any)...'], 'boolean', 'Whether any item satisfies a lambda.', {
    sql: lambdaEmitters.arrayExists,
  }),
  higherOrder('arrayAll', ['any', 'array(any)...'], 'boolean', 'Whether all items satisfy a lambda.', {
    sql: lambdaEmitters.arrayAll,
  }),
  higherOrder(
    'arrayFirst',
    ['lambda', 'array(T)', 'array(any)...'],
    'T',
    'The first item that satisfies a lambda.',
    {
      sql: lambdaEmitters.arrayFirst,
    },
  ),
  higherOrder(
    'arrayLast',
    ['lambda', 'array(T)', 'array(any)...'],
    'T',
    'The last item that satisfies a lambda.',
    {
      sql: lambdaEmitters.arrayLast,
    },
  ),
  higherOrder(
    'arrayFirstIndex',
    ['lambda', 'array(T)', 'array(any)...'],
    'integer',
    'The index of the first item that satisfies a lambda.',
    {
      sql: lambdaEmitters.arrayFirstIndex,
    },
  ),
  higherOrder(
    'arrayLastIndex',
    ['lambda', 'array(T)', 'array(any)...'],
    'integer',
    'The index of the last item that satisfies a lambda.',
    {
      sql: lambdaEmitters.arrayLastIndex,
    },
  ),
  higherOrder('arrayCount', ['any', 'array(any)...'], 'integer', 'Number of items that satisfy a lambda.', {
    sql: lambdaEmitters.arrayCount,
  }),
  higherOrder('arraySum', ['any', 'array(any)...'], 'number', 'The sum of the items.', {
    sql: lambdaEmitters.arraySum,
  }),
  higherOrder('arrayAvg', ['any', 'array(any)...'], 'float', 'The mean of the items.', {
    sql: lambdaEmitters.arrayAvg,
  }),
  higherOrder('arrayMin', ['any', 'array(any)...'], 'any', 'The smallest item.', {
    sql: lambdaEmitters.arrayMin,
  }),
  higherOrder('arrayMax', ['any', 'array(any)...'], 'any', 'The largest item.', {
    sql: lambdaEmitters.arrayMax,
  }),
  higherOrder('arrayProduct', ['any', 'array(any)...'], 'float', 'The product of the items.', {
    sql: lambdaEmitters.arrayProduct,
  }),
  higherOrder('arrayCumSum', ['any', 'array(any)...'], 'array(number)', 'The running sums.', {
    sql: lambdaEmitters.arrayCumSum,
  }),
  higherOrder(
    'arrayFold',
    ['lambda', 'array(any)', 'any', 'any...'],
    'any',
    'The result of applying a lambda to all items in turn.',
    {
      sql: byCompiler,
    },
  ),
  higherOrder(
    'arrayFill',
    ['lambda', 'array(T)', 'array(any)...'],
    'array(T)',
    'The array with items that do not satisfy a lambda replaced by the preceding one.',
    {
      sql: lambdaEmitters.arrayFill,
    },
  ),
];
