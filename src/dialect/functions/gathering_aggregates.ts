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
    cases: {
      'arraySort(groupArray(x)) FROM numbers': [-3, 1, 2, 2, 5],
      'arraySort(groupArray(x)) FROM nulls': [1, 4],
      'groupArray(x) FROM none': [],
    },
  }),
  aggregate('groupUniqArray', ['T'], 'array(T)', 'The distinct values as an array.', {
    parameters: ['integer?'],
    parameterRanges: [{ index: 0, min: 1 }],
    sql: basicAggregateEmitters.groupUniqArray,
    gathers: 'distinct',
    sorts: true,
    distinct: 'supported',
    cases: {
      'arraySort(groupUniqArray(x)) FROM numbers': [-3, 1, 2, 5],
      'arraySort(groupUniqArray(x)) FROM nulls': [1, 4],
      'groupUniqArray(x) FROM none': [],
    },
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
    cases: {
      'length(groupArraySample(3)(x)) FROM numbers': 3,
      'groupArraySample(3)(x) FROM none': [],
      'arraySort(groupArraySample(10)(x)) FROM numbers': [-3, 1, 2, 2, 5],
    },
  }),
  aggregate('groupArrayMovingAvg', ['number'], 'array(float)', 'Moving averages of the values.', {
    parameters: ['integer?'],
    parameterRanges: [{ index: 0, min: 1 }],
    sql: listAggregateEmitters.groupArrayMovingAvg,
    gathers: 'all',
    isOrderSensitive: true,
    cases: { 'length(groupArrayMovingAvg(x)) FROM flags': 3, 'groupArrayMovingAvg(x) FROM none': [] },
  }),
  aggregate('topK', ['T'], 'array(T)', 'The most frequent values.', {
    parameters: ['integer?'],
    parameterRanges: [{ index: 0, min: 1, max: 16_777_215 }],
    sql: basicAggregateEmitters.topK,
    gathers: 'all',
    cases: { 'topK(1)(x) FROM words': ['a'], 'topK(2)(x) FROM words': ['a', 'b'], 'topK(x) FROM none': [] },
  }),
  aggregate('sumMap', ['map'], 'map', 'Sum of the values of each key.', {
    sql: listAggregateEmitters.sumMap,
    gathers: 'all',
    cases: {
      'sumMap(x) FROM maps': { a: 11, b: 2 },
      'sumMapIf(x, 1 = 0) FROM maps': {},
      'sumMap(x) FROM more_maps': { a: 2.5, b: 2 },
    },
  }),
  aggregate('minMap', ['map'], 'map', 'Smallest value of each key.', {
    sql: listAggregateEmitters.minMap,
    gathers: 'all',
    cases: { 'minMap(x) FROM maps': { a: 1, b: 2 } },
  }),
  aggregate('maxMap', ['map'], 'map', 'Largest value of each key.', {
    sql: listAggregateEmitters.maxMap,
    gathers: 'all',
    cases: { 'maxMap(x) FROM maps': { a: 10, b: 2 } },
  }),
  aggregate('deltaSum', ['number'], 'number', 'Sum of the increases between successive values.', {
    sql: listAggregateEmitters.deltaSum,
    gathers: 'all',
    isOrderSensitive: true,
    cases: { 'deltaSum(x) FROM pairs': 3, 'deltaSum(x) FROM none': 0, 'deltaSum(x) > -1 FROM numbers': 1 },
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
      cases: {
        'windowFunnel(3600)(y, x = 1, x = 2, x = 3) FROM grown': 3,
        'windowFunnel(900)(y, x = 1, x = 2, x = 3) FROM grown': 2,
        'windowFunnel(3600)(y, x = 2, x = 1) FROM grown': 1,
      },
    },
  ),
  standardAggregate('array_agg', ['T'], 'array(T)', 'The values as an array, nulls included.', {
    sql: basicAggregateEmitters.array_agg,
    gathers: 'all',
    isOrderSensitive: true,
    distinct: 'supported',
    cases: {
      "arraySort(array_agg(x)) from (select 1 as x, 'a' as y union all select 2 as x, 'b' as y union all select 2 as x, 'c' as y union all select 5 as x, 'd' as y) as g":
        [1, 2, 2, 5],
      "array_agg(y ORDER BY y DESC) from (select 1 as x, 'a' as y union all select 2 as x, 'b' as y union all select 2 as x, 'c' as y union all select 5 as x, 'd' as y) as g":
        ['d', 'c', 'b', 'a'],
      "array_agg(x) from (select 1 as x, 'a' as y union all select 2 as x, 'b' as y union all select 2 as x, 'c' as y union all select 5 as x, 'd' as y) as g where x > 9":
        [],
    },
  }),
  standardAggregate('string_agg', ['string', 'string'], 'string', 'The strings joined by a separator.', {
    sql: basicAggregateEmitters.string_agg,
    gathers: 'all',
    isOrderSensitive: true,
    distinct: 'without_over',
    cases: {
      "string_agg(y, ',' ORDER BY y) from (select 1 as x, 'a' as y union all select 2 as x, 'b' as y union all select 2 as x, 'c' as y union all select 5 as x, 'd' as y) as g":
        'a,b,c,d',
      "string_agg(y, '') from (select 1 as x, 'a' as y union all select 2 as x, 'b' as y union all select 2 as x, 'c' as y union all select 5 as x, 'd' as y) as g where y = 'b'":
        'b',
      "string_agg(y, ',') from (select 1 as x, 'a' as y union all select 2 as x, 'b' as y union all select 2 as x, 'c' as y union all select 5 as x, 'd' as y) as g where x > 9":
        null,
    },
  }),
  standardAggregate('json_agg', ['any'], 'json', 'The values as a JSON array.', {
    sql: 'jsonb_agg($1)',
    gathers: 'all',
    cases: {
      "json_agg(y) from (select 1 as x, 'a' as y union all select 2 as x, 'b' as y union all select 2 as x, 'c' as y union all select 5 as x, 'd' as y) as g where x = 5":
        ['d'],
      "json_agg(x) from (select 1 as x, 'a' as y union all select 2 as x, 'b' as y union all select 2 as x, 'c' as y union all select 5 as x, 'd' as y) as g where x > 9":
        null,
    },
  }),
];
