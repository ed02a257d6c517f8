import { basicAggregateEmitters } from '../compile/functions/aggregate_emitters.ts';
import { aggregate, standardAggregate, type FunctionDefinition } from './function_definition.ts';

/** Aggregates that keep one value, or a set of hashed ones. Each also takes combinators, such as `If` with a condition as its last argument. */
export const aggregates: readonly FunctionDefinition[] = [
  standardAggregate('count', ['any...'], 'integer', 'Number of rows, or of rows with a non-null argument.', {
    sql: basicAggregateEmitters.count,
    distinct: 'without_over',
    cases: { 'count() FROM numbers': 5, 'count(x) FROM nulls': 2, 'count() FROM none': 0 },
  }),
  aggregate('countDistinct', ['any', 'any...'], 'integer', 'Number of distinct non-null values.', {
    sql: basicAggregateEmitters.countDistinct,
    sorts: true,
    distinct: 'without_over',
    cases: {
      'countDistinct(x) FROM numbers': 4,
      'countDistinct(x) FROM nulls': 2,
      'countDistinct(x) FROM none': 0,
    },
  }),
  standardAggregate('sum', ['number'], 'number', 'Sum of the non-null values; 0 if there are none.', {
    sql: basicAggregateEmitters.sum,
    distinct: 'without_over',
    cases: { 'sum(x) FROM numbers': 7, 'sum(x) FROM nulls': 5, 'sum(x) FROM none': 0 },
  }),
  standardAggregate('avg', ['number'], 'float', 'Mean of the non-null values.', {
    sql: basicAggregateEmitters.avg,
    cases: { 'avg(x) FROM numbers': 1.4, 'avg(x) FROM nulls': 2.5, 'avg(x) FROM none': 'nan' },
  }),
  standardAggregate('min', ['T'], 'T', 'Smallest value.', {
    sql: basicAggregateEmitters.min,
    distinct: 'supported',
    cases: { 'min(x) FROM numbers': -3, 'min(x) FROM nulls': 1, 'min(x) FROM none': 0 },
  }),
  standardAggregate('max', ['T'], 'T', 'Largest value.', {
    sql: basicAggregateEmitters.max,
    distinct: 'supported',
    cases: { 'max(x) FROM numbers': 5, 'max(x) FROM nulls': 4, 'max(x) FROM none': 0 },
  }),
  standardAggregate('any', ['T'], 'T', 'Any non-null value.', {
    sql: basicAggregateEmitters.any,
    distinct: 'supported',
    cases: { 'any(x) FROM only_null': null, 'any(x) FROM none': 0, 'anyIf(x, x > 1) FROM nulls': 4 },
  }),
  aggregate('anyLast', ['T'], 'T', 'The last value read.', {
    sql: basicAggregateEmitters.anyLast,
    distinct: 'supported',
    cases: { 'anyLast(x) FROM only_null': null, 'anyLast(x) FROM none': 0 },
  }),
  aggregate('anyHeavy', ['T'], 'T', 'A frequent value.', {
    sql: basicAggregateEmitters.anyHeavy,
    cases: { 'anyHeavy(x) FROM only_null': null },
  }),
  aggregate('argMin', ['T', 'any'], 'T', 'The first argument of the row with the smallest second one.', {
    sql: basicAggregateEmitters.argMin,
    cases: { 'argMin(x, y) FROM keyed': 'a', 'argMin(x, x) FROM none': 0, 'argMin(x, x) FROM nulls': 1 },
  }),
  aggregate('argMax', ['T', 'any'], 'T', 'The first argument of the row with the largest second one.', {
    sql: basicAggregateEmitters.argMax,
    cases: { 'argMax(x, y) FROM keyed': 'b', 'argMax(x, x) FROM none': 0, 'argMax(x, x) FROM nulls': 4 },
  }),
  aggregate('uniq', ['any', 'any...'], 'integer', 'Number of distinct values, counted exactly here.', {
    sql: basicAggregateEmitters.uniq,
    sorts: true,
    distinct: 'without_over',
    cases: { 'uniq(x) FROM numbers': 4, 'uniq(x) FROM nulls': 2, 'uniq(x) FROM none': 0 },
  }),
  aggregate('uniqExact', ['any', 'any...'], 'integer', 'Number of distinct values, counted exactly.', {
    sql: basicAggregateEmitters.uniqExact,
    sorts: true,
    distinct: 'without_over',
    cases: { 'uniqExact(x) FROM numbers': 4, 'uniqExact(x) FROM nulls': 2, 'uniqExact(x) FROM none': 0 },
  }),
  aggregate('uniqHLL12', ['any', 'any...'], 'integer', 'Number of distinct values, counted exactly here.', {
    sql: basicAggregateEmitters.uniqHLL12,
    sorts: true,
    distinct: 'without_over',
    cases: { 'uniqHLL12(x) FROM numbers': 4, 'uniqHLL12(x) FROM nulls': 2, 'uniqHLL12(x) FROM none': 0 },
  }),
  standardAggregate('every', ['boolean'], 'boolean', 'Whether all values are true.', {
    sql: 'every($1)',
    cases: {
      "every(x > 0) from (select 1 as x, 'a' as y union all select 2 as x, 'b' as y union all select 2 as x, 'c' as y union all select 5 as x, 'd' as y) as g": true,
      "every(x > 1) from (select 1 as x, 'a' as y union all select 2 as x, 'b' as y union all select 2 as x, 'c' as y union all select 5 as x, 'd' as y) as g": false,
      "every(x > 1) from (select 1 as x, 'a' as y union all select 2 as x, 'b' as y union all select 2 as x, 'c' as y union all select 5 as x, 'd' as y) as g where x > 9":
        null,
    },
  }),
];
