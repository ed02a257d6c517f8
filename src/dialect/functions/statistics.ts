import { basicAggregateEmitters } from '../compile/functions/aggregate_emitters.ts';
import { listAggregateEmitters } from './emit/list_aggregates.ts';
import { statisticEmitters } from './emit/statistics.ts';
import { aggregate, standardAggregate, type FunctionDefinition } from './function_definition.ts';

/** Aggregates of statistics, quantiles and bits. */
export const statisticAggregates: readonly FunctionDefinition[] = [
  aggregate('groupBitAnd', ['integer'], 'integer', 'Bits that are set in all values.', {
    sql: statisticEmitters.groupBitAnd,
    cases: { 'groupBitAnd(x) FROM flags': 0, 'groupBitAnd(toInt64(x)) FROM none': -1 },
  }),
  aggregate('groupBitOr', ['integer'], 'integer', 'Bits that are set in any value.', {
    sql: statisticEmitters.groupBitOr,
    cases: {
      'groupBitOr(x) FROM flags': 1,
      'groupBitOr(toInt64(x)) FROM numbers': -1,
      'groupBitOr(x) FROM none': 0,
    },
  }),
  aggregate('groupBitXor', ['integer'], 'integer', 'Bits that are set in an odd number of values.', {
    sql: statisticEmitters.groupBitXor,
    cases: { 'groupBitXor(x) FROM flags': 0, 'groupBitXor(toInt64(x)) FROM numbers': -7 },
  }),
  aggregate('median', ['number'], 'float', 'The median, interpolated between two values if necessary.', {
    sql: basicAggregateEmitters.median,
    sorts: true,
    cases: { 'median(x) FROM numbers': 2, 'median(x) FROM nulls': 2.5, 'median(x) FROM none': 'nan' },
  }),
  aggregate('medianExact', ['number'], 'number', 'The median, always an existing value.', {
    sql: listAggregateEmitters.medianExact,
    sorts: true,
    cases: {
      'medianExact(x) FROM numbers': 2,
      'medianExact(x) FROM nulls': 4,
      'medianExact(x) FROM only_null': null,
    },
  }),
  aggregate('quantile', ['number'], 'float', 'The quantile at a level, interpolated.', {
    parameters: ['float?'],
    sql: basicAggregateEmitters.quantile,
    sorts: true,
    cases: {
      'quantile(0.9)(x) FROM numbers': 3.8000000000000003,
      'quantile(0.5)(x) FROM nulls': 2.5,
      'quantile(0.5)(x) FROM none': 'nan',
    },
  }),
  aggregate('quantileExact', ['number'], 'number', 'The quantile at a level, always an existing value.', {
    parameters: ['float?'],
    sql: listAggregateEmitters.quantileExact,
    sorts: true,
    cases: {
      'quantileExact(0.9)(x) FROM numbers': 5,
      'quantileExact(0.5)(y) FROM pairs': 4,
      'quantileExact(0.25)(y) FROM pairs': 3,
    },
  }),
  aggregate('quantiles', ['number'], 'array(float)', 'The quantiles at several levels.', {
    parameters: ['float', 'float...'],
    sql: basicAggregateEmitters.quantiles,
    sorts: true,
    cases: {
      'quantiles(0.5, 0.9)(x) FROM numbers': [2, 3.8000000000000003],
      'quantiles(0.25)(y) FROM pairs': [2.75],
      'quantiles(0.1, 0.5)(x) FROM nulls': [1.3, 2.5],
    },
  }),
  aggregate('stddevPop', ['number'], 'float', 'Standard deviation of all values.', {
    sql: statisticEmitters.stddevPop,
    cases: {
      'stddevPop(x) FROM numbers': 2.5768197453450252,
      'stddevPop(x) FROM nulls': 1.5,
      'stddevPop(x) FROM none': 'nan',
    },
  }),
  aggregate('stddevSamp', ['number'], 'float', 'Standard deviation of a sample.', {
    sql: statisticEmitters.stddevSamp,
    cases: {
      'stddevSamp(x) FROM numbers': 2.8809720581775866,
      'stddevSamp(x) FROM nulls': 2.1213203435596424,
      'stddevSamp(x) FROM none': 'nan',
    },
  }),
  aggregate('varPop', ['number'], 'float', 'Variance of all values.', {
    sql: statisticEmitters.varPop,
    cases: {
      'varPop(x) FROM numbers': 6.640000000000001,
      'varPop(x) FROM nulls': 2.25,
      'varPop(x) FROM none': 'nan',
    },
  }),
  aggregate('varSamp', ['number'], 'float', 'Variance of a sample.', {
    sql: statisticEmitters.varSamp,
    cases: { 'varSamp(x) FROM numbers': 8.3, 'varSamp(x) FROM nulls': 4.5, 'varSamp(x) FROM none': 'nan' },
  }),
  aggregate('covarPop', ['number', 'number'], 'float', 'Covariance of all pairs.', {
    sql: statisticEmitters.covarPop,
    cases: { 'covarPop(x, y) FROM pairs': 1, 'covarPop(x, x) FROM none': 'nan' },
  }),
  aggregate('covarSamp', ['number', 'number'], 'float', 'Covariance of a sample.', {
    sql: statisticEmitters.covarSamp,
    cases: { 'covarSamp(x, y) FROM pairs': 1.3333333333333333, 'covarSamp(x, x) FROM none': 'nan' },
  }),
  standardAggregate('corr', ['number', 'number'], 'float', 'Correlation of pairs.', {
    sql: statisticEmitters.corr,
    cases: { 'corr(x, y) FROM pairs': 0.8, 'corr(x, x) FROM none': 'nan' },
  }),
  aggregate('skewPop', ['number'], 'float', 'Skewness of all values.', {
    sql: statisticEmitters.skewPop,
    cases: {
      'skewPop(x) FROM numbers': -0.4460527720023144,
      'skewPop(x) FROM floats': -0.4922084283307169,
      'skewPop(x) FROM none': 'nan',
    },
  }),
  aggregate('kurtPop', ['number'], 'float', 'Kurtosis of all values.', {
    sql: statisticEmitters.kurtPop,
    cases: {
      'kurtPop(x) FROM numbers': 2.4634199448395995,
      'kurtPop(x) FROM floats': 1.4999999999999993,
      'kurtPop(x) FROM none': 'nan',
    },
  }),
  aggregate('avgWeighted', ['number', 'number'], 'float', 'Weighted mean.', {
    sql: statisticEmitters.avgWeighted,
    cases: {
      'avgWeighted(x, y) FROM pairs': 2.7857142857142856,
      'avgWeighted(x, x) FROM none': 'nan',
      'avgWeighted(x, x) FROM nulls': 3.4,
    },
  }),
  aggregate(
    'simpleLinearRegression',
    ['number', 'number'],
    'tuple',
    'Slope and intercept of the regression line.',
    {
      sql: basicAggregateEmitters.simpleLinearRegression,
      cases: { 'simpleLinearRegression(x, y) FROM pairs': [0.8, 1.5] },
    },
  ),
];
