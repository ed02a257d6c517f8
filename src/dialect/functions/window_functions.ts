import { basicAggregateEmitters } from '../compile/functions/aggregate_emitters.ts';
import { frameValueEmitters } from './emit/frame_values.ts';
import { windowFunction, type FunctionDefinition } from './function_definition.ts';

/** Window functions, which require OVER. */
export const windowFunctions: readonly FunctionDefinition[] = [
  windowFunction('row_number', [], 'integer', 'The number of the row.', {
    sql: 'row_number()',
  }),
  windowFunction('rank', [], 'integer', 'The rank, with gaps after equal rows.', {
    sql: 'rank()',
  }),
  windowFunction('dense_rank', [], 'integer', 'The rank without gaps.', {
    sql: 'dense_rank()',
  }),
  windowFunction('lag', ['T', 'integer?', 'T?'], 'T', 'The value of a preceding row.', {
    sql: basicAggregateEmitters.lag,
  }),
  windowFunction('lead', ['T', 'integer?', 'T?'], 'T', 'The value of a following row.', {
    sql: basicAggregateEmitters.lead,
  }),
  windowFunction(
    'lagInFrame',
    ['T', 'integer?', 'T?'],
    'T',
    'The value of a preceding row within the frame.',
    {
      ranges: [{ index: 1, min: 0 }],
      sql: basicAggregateEmitters.lagInFrame,
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
    },
  ),
  windowFunction('first_value', ['T'], 'T', 'The first non-null value of the frame.', {
    sql: frameValueEmitters.first_value,
  }),
  windowFunction('last_value', ['T'], 'T', 'The last non-null value of the frame.', {
    sql: frameValueEmitters.last_value,
  }),
  windowFunction('nth_value', ['T', 'integer'], 'T', 'The value of the n-th row of the frame.', {
    ranges: [{ index: 1, min: 1 }],
    sql: basicAggregateEmitters.nth_value,
  }),
];
