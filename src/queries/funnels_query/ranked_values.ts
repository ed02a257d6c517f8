import type { Select } from '../../dialect/ast.ts';
import { numbersBetween, type FunnelPlan } from './plan.ts';
import { valueLimit } from './breakdown_value.ts';
import { passThrough, selectFrom } from './select_from.ts';

/**
 * Rows with a column `_value`, with the columns `_shown`: the value that they are counted for, null for all values behind
 * the limit, and `_place`, the place of their value.
 * @param names columns that are kept beside `_value`
 * @param measures aggregates of a value's rows; values of which they are larger come first
 */
export function withRanks(
  plan: FunnelPlan,
  rows: Select,
  names: readonly string[],
  measures: readonly string[],
): Select {
  const keptColumns = [...names, '_value'];
  const measured = selectFrom(rows, [
    ...passThrough(keptColumns),
    ...measures.map((measure, index) => `${measure} over (partition by r._value) as _m${index}`),
  ]);
  const by = measures.map((_, index) => `r._m${index} desc`);
  const ranked = selectFrom(measured, [
    ...passThrough(keptColumns),
    `dense_rank() over (order by ${[...by, 'r._value'].join(', ')}) as _place`,
  ]);
  return selectFrom(ranked, [
    ...passThrough([...keptColumns, '_place']),
    `if(r._place <= ${valueLimit(plan)}, r._value, null) as _shown`,
  ]);
}

/** What values are told apart by that actors of a funnel come with: how many came furthest, and so on. */
export const depthMeasures = ({ length }: FunnelPlan): readonly string[] =>
  numbersBetween(1, length)
    .toReversed()
    .map((step) => `countIf(r._depth >= ${step})`);
