import { basicAggregateEmitters } from '../compile/functions/aggregate_emitters.ts';
import { listAggregateEmitters } from './emit/list_aggregates.ts';
import { aggregate, standardAggregate, type FunctionDefinition } from './function_definition.ts';

/** Aggregates that gather all values of a group. */
export const gatheringAggregates: readonly FunctionDefinition[] = [
  aggregate('groupArray', ['T'], 'array(T)', 'The values as an array.', {
    parameters: ['integer?'],
    parameterRanges: [{ index: 0, min: 1 }],
    sql: basicAggregateEmitters.groupArray,
    gathers: 'all',
    isOrderSensitive: true,
    distinct: 'supported',
  }),
  aggregate('groupUniqArray', ['T'], 'array(T)', 'The distinct values as an array.', {
    parameters: ['integer?'],
    parameterRanges: [{ index: 0, min: 1 }],
    sql: basicAggregateEmitters.groupUniqArray,
    gathers: 'distinct',
    sorts: true,
    distinct: 'supported',
  }),
  aggregate('groupArraySample', ['T'], 'array(T)', 'A random sample of the values.', {
    parameters: ['integer', 'integer?'],
    parameterRanges: [
      { index: 0, min: 1 },
      { index: 1, min: 0 },
    ],
    sql: listAggregateEmitters.groupArraySample,
    gathers: 'all',
    isOrderSensitive: true,
  }),
  aggregate('groupArrayMovingAvg', ['number'], 'array(float)', 'Moving averages of the values.', {
    parameters: ['integer?'],
    parameterRanges: [{ index: 0, min: 1 }],
    sql: listAggregateEmitters.groupArrayMovingAvg,
    gathers: 'all',
    isOrderSensitive: true,
  }),
  aggregate('topK', ['T'], 'array(T)', 'The most frequent values.', {
    parameters: ['integer?'],
    parameterRanges: [{ index: 0, min: 1, max: 16_777_215 }],
    sql: basicAggregateEmitters.topK,
    gathers: 'all',
  }),
  aggregate('sumMap', ['map'], 'map', 'Sum of the values of each key.', {
    sql: listAggregateEmitters.sumMap,
    gathers: 'all',
  }),
  aggregate('minMap', ['map'], 'map', 'Smallest value of each key.', {
    sql: listAggregateEmitters.minMap,
    gathers: 'all',
  }),
  aggregate('maxMap', ['map'], 'map', 'Largest value of each key.', {
    sql: listAggregateEmitters.maxMap,
    gathers: 'all',
  }),
  aggregate('deltaSum', ['number'], 'number', 'Sum of the increases between successive values.', {
    sql: listAggregateEmitters.deltaSum,
    gathers: 'all',
    isOrderSensitive: true,
  }),
  aggregate(
    'windowFunnel',
    ['date_or_datetime', 'boolean...'],
    'integer',
    'Number of steps reached in order within a time window.',
    {
      parameters: ['integer', 'string...'],
      parameterRanges: [{ index: 0, min: 0 }],
      sql: listAggregateEmitters.windowFunnel,
      gathers: 'all',
    },
  ),
  standardAggregate('array_agg', ['T'], 'array(T)', 'The values as an array, nulls included.', {
    sql: basicAggregateEmitters.array_agg,
    gathers: 'all',
    isOrderSensitive: true,
    distinct: 'supported',
  }),
  standardAggregate('string_agg', ['string', 'string'], 'string', 'The strings joined by a separator.', {
    sql: basicAggregateEmitters.string_agg,
    gathers: 'all',
    isOrderSensitive: true,
    distinct: 'without_over',
  }),
  standardAggregate('json_agg', ['any'], 'json', 'The values as a JSON array.', {
    sql: 'jsonb_agg($1)',
    gathers: 'all',
  }),
];
