import type { CasesByFunction } from './case_rows.ts';

/** Cases of aggregates and window functions. */
export const aggregateCases: CasesByFunction = {
  count: { 'count() FROM numbers': 5, 'count(x) FROM nulls': 2, 'count() FROM none': 0 },
  countDistinct: {
    'countDistinct(x) FROM numbers': 4,
    'countDistinct(x) FROM nulls': 2,
    'countDistinct(x) FROM none': 0,
  },
  sum: { 'sum(x) FROM numbers': 7, 'sum(x) FROM nulls': 5, 'sum(x) FROM none': 0 },
  avg: { 'avg(x) FROM numbers': 1.4, 'avg(x) FROM nulls': 2.5, 'avg(x) FROM none': 'nan' },
  min: { 'min(x) FROM numbers': -3, 'min(x) FROM nulls': 1, 'min(x) FROM none': 0 },
  max: { 'max(x) FROM numbers': 5, 'max(x) FROM nulls': 4, 'max(x) FROM none': 0 },
  any: { 'any(x) FROM only_null': null, 'any(x) FROM none': 0, 'anyIf(x, x > 1) FROM nulls': 4 },
  anyLast: { 'anyLast(x) FROM only_null': null, 'anyLast(x) FROM none': 0 },
  anyHeavy: { 'anyHeavy(x) FROM only_null': null },
  argMin: { 'argMin(x, y) FROM keyed': 'a', 'argMin(x, x) FROM none': 0, 'argMin(x, x) FROM nulls': 1 },
  argMax: { 'argMax(x, y) FROM keyed': 'b', 'argMax(x, x) FROM none': 0, 'argMax(x, x) FROM nulls': 4 },
  uniq: { 'uniq(x) FROM numbers': 4, 'uniq(x) FROM nulls': 2, 'uniq(x) FROM none': 0 },
  uniqExact: { 'uniqExact(x) FROM numbers': 4, 'uniqExact(x) FROM nulls': 2, 'uniqExact(x) FROM none': 0 },
  uniqHLL12: { 'uniqHLL12(x) FROM numbers': 4, 'uniqHLL12(x) FROM nulls': 2, 'uniqHLL12(x) FROM none': 0 },
  every: {
    "every(x > 0) from (select 1 as x, 'a' as y union all select 2 as x, 'b' as y union all select 2 as x, 'c' as y union all select 5 as x, 'd' as y) as g": true,
    "every(x > 1) from (select 1 as x, 'a' as y union all select 2 as x, 'b' as y union all select 2 as x, 'c' as y union all select 5 as x, 'd' as y) as g": false,
    "every(x > 1) from (select 1 as x, 'a' as y union all select 2 as x, 'b' as y union all select 2 as x, 'c' as y union all select 5 as x, 'd' as y) as g where x > 9":
      null,
  },
  groupArray: {
    'arraySort(groupArray(x)) FROM numbers': [-3, 1, 2, 2, 5],
    'arraySort(groupArray(x)) FROM nulls': [1, 4],
    'groupArray(x) FROM none': [],
  },
  groupUniqArray: {
    'arraySort(groupUniqArray(x)) FROM numbers': [-3, 1, 2, 5],
    'arraySort(groupUniqArray(x)) FROM nulls': [1, 4],
    'groupUniqArray(x) FROM none': [],
  },
  groupArraySample: {
    'length(groupArraySample(3)(x)) FROM numbers': 3,
    'groupArraySample(3)(x) FROM none': [],
    'arraySort(groupArraySample(10)(x)) FROM numbers': [-3, 1, 2, 2, 5],
  },
  groupArrayMovingAvg: {
    'length(groupArrayMovingAvg(x)) FROM flags': 3,
    'groupArrayMovingAvg(x) FROM none': [],
  },
  topK: { 'topK(1)(x) FROM words': ['a'], 'topK(2)(x) FROM words': ['a', 'b'], 'topK(x) FROM none': [] },
  sumMap: {
    'sumMap(x) FROM maps': { a: 11, b: 2 },
    'sumMapIf(x, 1 = 0) FROM maps': {},
    'sumMap(x) FROM more_maps': { a: 2.5, b: 2 },
  },
  minMap: { 'minMap(x) FROM maps': { a: 1, b: 2 } },
  maxMap: { 'maxMap(x) FROM maps': { a: 10, b: 2 } },
  deltaSum: { 'deltaSum(x) FROM pairs': 3, 'deltaSum(x) FROM none': 0, 'deltaSum(x) > -1 FROM numbers': 1 },
  windowFunnel: {
    'windowFunnel(3600)(y, x = 1, x = 2, x = 3) FROM grown': 3,
    'windowFunnel(900)(y, x = 1, x = 2, x = 3) FROM grown': 2,
    'windowFunnel(3600)(y, x = 2, x = 1) FROM grown': 1,
  },
  array_agg: {
    "arraySort(array_agg(x)) from (select 1 as x, 'a' as y union all select 2 as x, 'b' as y union all select 2 as x, 'c' as y union all select 5 as x, 'd' as y) as g":
      [1, 2, 2, 5],
    "array_agg(y ORDER BY y DESC) from (select 1 as x, 'a' as y union all select 2 as x, 'b' as y union all select 2 as x, 'c' as y union all select 5 as x, 'd' as y) as g":
      ['d', 'c', 'b', 'a'],
    "array_agg(x) from (select 1 as x, 'a' as y union all select 2 as x, 'b' as y union all select 2 as x, 'c' as y union all select 5 as x, 'd' as y) as g where x > 9":
      [],
  },
  string_agg: {
    "string_agg(y, ',' ORDER BY y) from (select 1 as x, 'a' as y union all select 2 as x, 'b' as y union all select 2 as x, 'c' as y union all select 5 as x, 'd' as y) as g":
      'a,b,c,d',
    "string_agg(y, '') from (select 1 as x, 'a' as y union all select 2 as x, 'b' as y union all select 2 as x, 'c' as y union all select 5 as x, 'd' as y) as g where y = 'b'":
      'b',
    "string_agg(y, ',') from (select 1 as x, 'a' as y union all select 2 as x, 'b' as y union all select 2 as x, 'c' as y union all select 5 as x, 'd' as y) as g where x > 9":
      null,
  },
  json_agg: {
    "json_agg(y) from (select 1 as x, 'a' as y union all select 2 as x, 'b' as y union all select 2 as x, 'c' as y union all select 5 as x, 'd' as y) as g where x = 5":
      '["d"]',
    "json_agg(x) from (select 1 as x, 'a' as y union all select 2 as x, 'b' as y union all select 2 as x, 'c' as y union all select 5 as x, 'd' as y) as g where x > 9":
      '[]',
  },
  groupBitAnd: { 'groupBitAnd(x) FROM flags': 0, 'groupBitAnd(toInt64(x)) FROM none': -1 },
  groupBitOr: {
    'groupBitOr(x) FROM flags': 1,
    'groupBitOr(toInt64(x)) FROM numbers': -1,
    'groupBitOr(x) FROM none': 0,
  },
  groupBitXor: { 'groupBitXor(x) FROM flags': 0, 'groupBitXor(toInt64(x)) FROM numbers': -7 },
  median: { 'median(x) FROM numbers': 2, 'median(x) FROM nulls': 2.5, 'median(x) FROM none': 'nan' },
  medianExact: {
    'medianExact(x) FROM numbers': 2,
    'medianExact(x) FROM nulls': 4,
    'medianExact(x) FROM only_null': null,
  },
  quantile: {
    'quantile(0.9)(x) FROM numbers': 3.8000000000000003,
    'quantile(0.5)(x) FROM nulls': 2.5,
    'quantile(0.5)(x) FROM none': 'nan',
  },
  quantileExactInclusive: {
    'quantileExactInclusive(0.9)(x) FROM numbers': 3.8000000000000003,
    'quantileExactInclusive(0.5)(x) FROM none': 'nan',
  },
  quantilesExactInclusive: {
    'quantilesExactInclusive(0.5, 0.9)(x) FROM numbers': [2, 3.8000000000000003],
  },
  quantilesExact: {
    'quantilesExact(0.25, 0.9)(y) FROM pairs': [3, 5],
    'quantilesExact(0.5)(x) FROM none': [0],
  },
  quantilesExactLow: { 'quantilesExactLow(0.5)(y) FROM pairs': [3] },
  quantilesExactHigh: { 'quantilesExactHigh(0.5)(y) FROM pairs': [4] },
  quantileExact: {
    'quantileExact(0.9)(x) FROM numbers': 5,
    'quantileExact(0.5)(y) FROM pairs': 4,
    'quantileExact(0.25)(y) FROM pairs': 3,
  },
  quantiles: {
    'quantiles(0.5, 0.9)(x) FROM numbers': [2, 3.8000000000000003],
    'quantiles(0.25)(y) FROM pairs': [2.75],
    'quantiles(0.1, 0.5)(x) FROM nulls': [1.3, 2.5],
  },
  stddevPop: {
    'stddevPop(x) FROM numbers': 2.5768197453450252,
    'stddevPop(x) FROM nulls': 1.5,
    'stddevPop(x) FROM none': 'nan',
  },
  stddevSamp: {
    'stddevSamp(x) FROM numbers': 2.8809720581775866,
    'stddevSamp(x) FROM nulls': 2.1213203435596424,
    'stddevSamp(x) FROM none': 'nan',
  },
  varPop: {
    'varPop(x) FROM numbers': 6.640000000000001,
    'varPop(x) FROM nulls': 2.25,
    'varPop(x) FROM none': 'nan',
  },
  varSamp: { 'varSamp(x) FROM numbers': 8.3, 'varSamp(x) FROM nulls': 4.5, 'varSamp(x) FROM none': 'nan' },
  covarPop: { 'covarPop(x, y) FROM pairs': 1, 'covarPop(x, x) FROM none': 'nan' },
  covarSamp: { 'covarSamp(x, y) FROM pairs': 1.3333333333333333, 'covarSamp(x, x) FROM none': 'nan' },
  corr: { 'corr(x, y) FROM pairs': 0.8, 'corr(x, x) FROM none': 'nan' },
  skewPop: {
    'skewPop(x) FROM numbers': -0.4460527720023144,
    'skewPop(x) FROM floats': -0.4922084283307169,
    'skewPop(x) FROM none': 'nan',
  },
  kurtPop: {
    'kurtPop(x) FROM numbers': 2.4634199448395995,
    'kurtPop(x) FROM floats': 1.4999999999999993,
    'kurtPop(x) FROM none': 'nan',
  },
  avgWeighted: {
    'avgWeighted(x, y) FROM pairs': 2.7857142857142856,
    'avgWeighted(x, x) FROM none': 'nan',
    'avgWeighted(x, x) FROM nulls': 3.4,
  },
  simpleLinearRegression: { 'simpleLinearRegression(x, y) FROM pairs': [0.8, 1.5] },
  row_number: {
    'row_number() OVER (ORDER BY y) FROM letters': [1, 2, 3, 4],
    'row_number() OVER (PARTITION BY x ORDER BY y) FROM letters': [1, 1, 2, 1],
  },
  rank: {
    'rank() OVER (ORDER BY x) FROM letters': [1, 2, 2, 4],
    'rank() OVER (ORDER BY x desc) FROM letters': [4, 2, 2, 1],
  },
  dense_rank: {
    'dense_rank() OVER (ORDER BY x) FROM letters': [1, 2, 2, 3],
    'dense_rank() OVER (PARTITION BY x ORDER BY y) FROM letters': [1, 1, 2, 1],
  },
  lag: {
    'lag(x) OVER (ORDER BY y) FROM letters': [null, 1, 2, 2],
    'lag(x, 2) OVER (ORDER BY y) FROM letters': [null, null, 1, 2],
    'lag(x, 1, 0) OVER (ORDER BY y) FROM letters': [0, 1, 2, 2],
  },
  lead: {
    'lead(x) OVER (ORDER BY y) FROM letters': [2, 2, 5, null],
    'lead(x, 3) OVER (ORDER BY y) FROM letters': [5, null, null, null],
    'lead(x, 1, 9) OVER (ORDER BY y) FROM letters': [2, 2, 5, 9],
  },
  lagInFrame: {
    'lagInFrame(x) OVER (ORDER BY y) FROM letters': [null, 1, 2, 2],
    'lagInFrame(x, 1, 7) OVER (ORDER BY y) FROM letters': [7, 1, 2, 2],
  },
  leadInFrame: {
    'leadInFrame(x) OVER (ORDER BY y ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) FROM letters':
      [2, 2, 5, null],
    'leadInFrame(x, 1, 7) OVER (ORDER BY y ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) FROM letters':
      [2, 2, 5, 7],
  },
  first_value: {
    'first_value(y) OVER (ORDER BY y) FROM letters': ['a', 'a', 'a', 'a'],
    'first_value(y) OVER (PARTITION BY x ORDER BY y) FROM letters': ['a', 'b', 'b', 'd'],
  },
  last_value: {
    'last_value(y) OVER (ORDER BY y) FROM letters': ['a', 'b', 'c', 'd'],
    'last_value(y) OVER (ORDER BY y ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) FROM letters': [
      'd',
      'd',
      'd',
      'd',
    ],
  },
  nth_value: {
    'nth_value(y, 9) OVER (ORDER BY y) FROM letters': [null, null, null, null],
    'nth_value(y, 2) OVER (ORDER BY y ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) FROM letters':
      ['b', 'b', 'b', 'b'],
  },
  groupArrayMovingSum: {
    'groupArrayMovingSum(2)(x) from (select 1 as x) as given where x > 1': [],
    'groupArrayMovingSum(x) from (select 1 as x) as given where x > 1': [],
    'length(groupArrayMovingSum(2)(x)) from (select 1 as x union all select 2 as x union all select 2 as x union all select 5 as x union all select -3 as x) as given': 5,
  },
  medianExactHigh: {
    'medianExactHigh(x) from (select 1 as x union all select 2 as x union all select 2 as x union all select 5 as x union all select -3 as x) as given': 2,
    'medianExactHigh(x) from (select 1 as x union all select 3 as x union all select 2 as x union all select 5 as x) as given': 3,
    'medianExactHigh(x) from (select 1 as x union all select NULL as x union all select 4 as x union all select NULL as x) as given': 4,
  },
  quantileExactHigh: {
    'quantileExactHigh(0.5)(x) from (select 1 as x union all select 3 as x union all select 2 as x union all select 5 as x) as given': 3,
    'quantileExactHigh(0.9)(x) from (select 1 as x union all select 3 as x union all select 2 as x union all select 5 as x) as given': 5,
    'quantileExactHigh(1)(x) from (select 1 as x union all select 3 as x union all select 2 as x union all select 5 as x) as given': 5,
  },
  medianExactLow: {
    'medianExactLow(x) from (select 1 as x union all select 2 as x union all select 2 as x union all select 5 as x union all select -3 as x) as given': 2,
    'medianExactLow(x) from (select 1 as x union all select 3 as x union all select 2 as x union all select 5 as x) as given': 2,
    'medianExactLow(x) from (select 1 as x union all select NULL as x union all select 4 as x union all select NULL as x) as given': 1,
  },
  quantileExactLow: {
    'quantileExactLow(0.5)(x) from (select 1 as x union all select 3 as x union all select 2 as x union all select 5 as x) as given': 2,
    'quantileExactLow(0.9)(x) from (select 1 as x union all select 3 as x union all select 2 as x union all select 5 as x) as given': 5,
    'quantileExactLow(0)(x) from (select 1 as x union all select 3 as x union all select 2 as x union all select 5 as x) as given': 1,
  },
  percentile_disc: {
    'percentile_disc(0.5)(x) from (select arrayJoin([1, 2, 4, 9]) as x) as given': 2,
    'percentile_disc(0.25)(x) from (select arrayJoin([1, 2, 4, 9]) as x) as given': 1,
  },
};
