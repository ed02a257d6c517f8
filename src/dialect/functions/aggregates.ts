import { basicAggregateEmitters } from '../compile/functions/aggregate_emitters.ts';
import { aggregate, standardAggregate, type FunctionDefinition } from './function_definition.ts';

/** Aggregates that keep one value, or a set of hashed ones. Each also takes combinators, such as `If` with a condition as its last argument. */
export const aggregates: readonly FunctionDefinition[] = [
  standardAggregate('count', ['any...'], 'integer', 'Number of rows, or of rows with a non-null argument.', {
    sql: basicAggregateEmitters.count,
    distinct: 'without_over',
  }),
  aggregate('countDistinct', ['any', 'any...'], 'integer', 'Number of distinct non-null values.', {
    sql: basicAggregateEmitters.countDistinct,
    sorts: true,
    distinct: 'without_over',
  }),
  standardAggregate('sum', ['number'], 'number', 'Sum of the non-null values; 0 if there are none.', {
    sql: basicAggregateEmitters.sum,
    distinct: 'without_over',
  }),
  standardAggregate('avg', ['number'], 'float', 'Mean of the non-null values.', {
    sql: basicAggregateEmitters.avg,
  }),
  standardAggregate('min', ['T'], 'T', 'Smallest value.', {
    sql: basicAggregateEmitters.min,
    distinct: 'supported',
  }),
  standardAggregate('max', ['T'], 'T', 'Largest value.', {
    sql: basicAggregateEmitters.max,
    distinct: 'supported',
  }),
  standardAggregate('any', ['T'], 'T', 'Any non-null value.', {
    sql: basicAggregateEmitters.any,
    distinct: 'supported',
  }),
  aggregate('anyLast', ['T'], 'T', 'The last value read.', {
    sql: basicAggregateEmitters.anyLast,
    distinct: 'supported',
  }),
  aggregate('anyHeavy', ['T'], 'T', 'A frequent value.', {
    sql: basicAggregateEmitters.anyHeavy,
  }),
  aggregate('argMin', ['T', 'any'], 'T', 'The first argument of the row with the smallest second one.', {
    sql: basicAggregateEmitters.argMin,
  }),
  aggregate('argMax', ['T', 'any'], 'T', 'The first argument of the row with the largest second one.', {
    sql: basicAggregateEmitters.argMax,
  }),
  aggregate('uniq', ['any', 'any...'], 'integer', 'Number of distinct values, counted exactly here.', {
    sql: basicAggregateEmitters.uniq,
    sorts: true,
    distinct: 'without_over',
  }),
  aggregate('uniqExact', ['any', 'any...'], 'integer', 'Number of distinct values, counted exactly.', {
    sql: basicAggregateEmitters.uniqExact,
    sorts: true,
    distinct: 'without_over',
  }),
  aggregate('uniqHLL12', ['any', 'any...'], 'integer', 'Number of distinct values, counted exactly here.', {
    sql: basicAggregateEmitters.uniqHLL12,
    sorts: true,
    distinct: 'without_over',
  }),
  standardAggregate('every', ['boolean'], 'boolean', 'Whether all values are true.', {
    sql: 'every($1)',
  }),
];
