import { basicAggregateEmitters } from '../compile/functions/aggregate_emitters.ts';
import { frameValueEmitters } from './emit/frame_values.ts';
import { windowFunction, type FunctionDefinition } from './function_definition.ts';

/** Window functions, which require OVER. */
export const windowFunctions: readonly FunctionDefinition[] = [
  windowFunction('row_number', [], 'integer', 'The number of the row.', {
    sql: 'row_number()',
    cases: {
      'row_number() OVER (ORDER BY y) FROM letters': [1, 2, 3, 4],
      'row_number() OVER (PARTITION BY x ORDER BY y) FROM letters': [1, 1, 2, 1],
    },
  }),
  windowFunction('rank', [], 'integer', 'The rank, with gaps after equal rows.', {
    sql: 'rank()',
    cases: {
      'rank() OVER (ORDER BY x) FROM letters': [1, 2, 2, 4],
      'rank() OVER (ORDER BY x desc) FROM letters': [4, 2, 2, 1],
    },
  }),
  windowFunction('dense_rank', [], 'integer', 'The rank without gaps.', {
    sql: 'dense_rank()',
    cases: {
      'dense_rank() OVER (ORDER BY x) FROM letters': [1, 2, 2, 3],
      'dense_rank() OVER (PARTITION BY x ORDER BY y) FROM letters': [1, 1, 2, 1],
    },
  }),
  windowFunction('lag', ['T', 'integer?', 'T?'], 'T', 'The value of a preceding row.', {
    sql: basicAggregateEmitters.lag,
    cases: {
      'lag(x) OVER (ORDER BY y) FROM letters': [null, 1, 2, 2],
      'lag(x, 2) OVER (ORDER BY y) FROM letters': [null, null, 1, 2],
      'lag(x, 1, 0) OVER (ORDER BY y) FROM letters': [0, 1, 2, 2],
    },
  }),
  windowFunction('lead', ['T', 'integer?', 'T?'], 'T', 'The value of a following row.', {
    sql: basicAggregateEmitters.lead,
    cases: {
      'lead(x) OVER (ORDER BY y) FROM letters': [2, 2, 5, null],
      'lead(x, 3) OVER (ORDER BY y) FROM letters': [5, null, null, null],
      'lead(x, 1, 9) OVER (ORDER BY y) FROM letters': [2, 2, 5, 9],
    },
  }),
  windowFunction(
    'lagInFrame',
    ['T', 'integer?', 'T?'],
    'T',
    'The value of a preceding row within the frame.',
    {
      ranges: [{ index: 1, min: 0 }],
      sql: basicAggregateEmitters.lagInFrame,
      cases: {
        'lagInFrame(x) OVER (ORDER BY y) FROM letters': [null, 1, 2, 2],
        'lagInFrame(x, 1, 7) OVER (ORDER BY y) FROM letters': [7, 1, 2, 2],
      },
    },
  ),
  windowFunction(
    'leadInFrame',
    ['T', 'integer?', 'T?'],
    'T',
    'The value of a following row within the frame.',
    {
      ranges: [{ index: 1, min: 0 }],
      sql: basicAggregateEmitters.leadInFrame,
      cases: {
        'leadInFrame(x) OVER (ORDER BY y ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) FROM letters':
          [2, 2, 5, null],
        'leadInFrame(x, 1, 7) OVER (ORDER BY y ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) FROM letters':
          [2, 2, 5, 7],
      },
    },
  ),
  windowFunction('first_value', ['T'], 'T', 'The first non-null value of the frame.', {
    sql: frameValueEmitters.first_value,
    cases: {
      'first_value(y) OVER (ORDER BY y) FROM letters': ['a', 'a', 'a', 'a'],
      'first_value(y) OVER (PARTITION BY x ORDER BY y) FROM letters': ['a', 'b', 'b', 'd'],
    },
  }),
  windowFunction('last_value', ['T'], 'T', 'The last non-null value of the frame.', {
    sql: frameValueEmitters.last_value,
    cases: {
      'last_value(y) OVER (ORDER BY y) FROM letters': ['a', 'b', 'c', 'd'],
      'last_value(y) OVER (ORDER BY y ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) FROM letters':
        ['d', 'd', 'd', 'd'],
    },
  }),
  windowFunction('nth_value', ['T', 'integer'], 'T', 'The value of the n-th row of the frame.', {
    ranges: [{ index: 1, min: 1 }],
    sql: basicAggregateEmitters.nth_value,
    cases: {
      'nth_value(y, 9) OVER (ORDER BY y) FROM letters': [null, null, null, null],
      'nth_value(y, 2) OVER (ORDER BY y ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) FROM letters':
        ['b', 'b', 'b', 'b'],
    },
  }),
];
