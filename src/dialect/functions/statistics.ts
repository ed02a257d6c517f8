import { basicAggregateEmitters } from '../compile/functions/aggregate_emitters.ts';
import { listAggregateEmitters } from './emit/list_aggregates.ts';
import { statisticEmitters } from './emit/statistics.ts';
import { aggregate, standardAggregate, type FunctionDefinition } from './function_definition.ts';

/** Aggregates of statistics, quantiles and bits. */
export const statisticAggregates: readonly FunctionDefinition[] = [
  aggregate('groupBitAnd', ['integer'], 'integer', 'Bits that are set in all values.', {
    sql: statisticEmitters.groupBitAnd,
  }),
  aggregate('groupBitOr', ['integer'], 'integer', 'Bits that are set in any value.', {
    sql: statisticEmitters.groupBitOr,
  }),
  aggregate('groupBitXor', ['integer'], 'integer', 'Bits that are set in an odd number of values.', {
    sql: statisticEmitters.groupBitXor,
  }),
  aggregate('median', ['number'], 'float', 'The median, interpolated between two values if necessary.', {
    sql: basicAggregateEmitters.median,
    sorts: true,
  }),
  aggregate('medianExact', ['number'], 'number', 'The median, always an existing value.', {
    sql: listAggregateEmitters.medianExact,
    sorts: true,
  }),
  aggregate('quantile', ['number'], 'float', 'The quantile at a level, interpolated.', {
    parameters: ['float?'],
    sql: basicAggregateEmitters.quantile,
    sorts: true,
  }),
  aggregate('quantileExact', ['number'], 'number', 'The quantile at a level, always an existing value.', {
    parameters: ['float?'],
    sql: listAggregateEmitters.quantileExact,
    sorts: true,
  }),
  aggregate('quantiles', ['number'], 'array(float)', 'The quantiles at several levels.', {
    parameters: ['float', 'float...'],
    sql: basicAggregateEmitters.quantiles,
    sorts: true,
  }),
  aggregate('stddevPop', ['number'], 'float', 'Standard deviation of all values.', {
    sql: statisticEmitters.stddevPop,
  }),
  aggregate('stddevSamp', ['number'], 'float', 'Standard deviation of a sample.', {
    sql: statisticEmitters.stddevSamp,
  }),
  aggregate('varPop', ['number'], 'float', 'Variance of all values.', {
    sql: statisticEmitters.varPop,
  }),
  aggregate('varSamp', ['number'], 'float', 'Variance of a sample.', {
    sql: statisticEmitters.varSamp,
  }),
  aggregate('covarPop', ['number', 'number'], 'float', 'Covariance of all pairs.', {
    sql: statisticEmitters.covarPop,
  }),
  aggregate('covarSamp', ['number', 'number'], 'float', 'Covariance of a sample.', {
    sql: statisticEmitters.covarSamp,
  }),
  standardAggregate('corr', ['number', 'number'], 'float', 'Correlation of pairs.', {
    sql: statisticEmitters.corr,
  }),
  aggregate('skewPop', ['number'], 'float', 'Skewness of all values.', {
    sql: statisticEmitters.skewPop,
  }),
  aggregate('kurtPop', ['number'], 'float', 'Kurtosis of all values.', {
    sql: statisticEmitters.kurtPop,
  }),
  aggregate('avgWeighted', ['number', 'number'], 'float', 'Weighted mean.', {
    sql: statisticEmitters.avgWeighted,
  }),
  aggregate(
    'simpleLinearRegression',
    ['number', 'number'],
    'tuple',
    'Slope and intercept of the regression line.',
    {
      sql: basicAggregateEmitters.simpleLinearRegression,
    },
  ),
];
