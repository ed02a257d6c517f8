import type { Select } from '../../dialect/ast.ts';
import { numbersBetween, type FunnelPlan } from './plan.ts';
import { valueLimit } from './breakdown_value.ts';
import { passThrough, selectFrom } from './select_from.ts';

/**
 * Adds to rows with `_value` the columns `_shown`, the value or null beyond the limit, and `_rank`, the rank of the
 * value.
 * @param names columns to keep besides `_value`
 * @param measures aggregates over a value's rows; values are ranked by them in descending order
 */
export function withRanks(
  plan: FunnelPlan,
  rows: Select,
  names: readonly string[],
  measures: readonly string[],
): Select {
  const columnNames = [...names, '_value'];
  const measured = selectFrom(rows, [
    ...passThrough(columnNames),
    ...measures.map((measure, index) => `${measure} over (partition by r._value) as _m${index}`),
  ]);
  const by = measures.map((_, index) => `r._m${index} desc`);
  const ranked = selectFrom(measured, [
    ...passThrough(columnNames),
    `dense_rank() over (order by ${[...by, 'r._value'].join(', ')}) as _rank`,
  ]);
  return selectFrom(ranked, [
    ...passThrough([...columnNames, '_rank']),
    `if(r._rank <= ${valueLimit(plan)}, r._value, null) as _shown`,
  ]);
}

/** Ranks values by how many actors reached the last step, then the step before it, and so on. */
export const depthMeasures = ({ length }: FunnelPlan): readonly string[] =>
  numbersBetween(1, length)
    .toReversed()
    .map((step) => `countIf(r._depth >= ${step})`);
