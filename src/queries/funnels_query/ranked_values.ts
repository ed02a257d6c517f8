import type { Select } from '../../dialect/ast.ts';
import { numbersBetween, type FunnelPlan } from './plan.ts';
import { valueLimit } from './shown_value.ts';
import { handedOn, stage } from './stage.ts';

/**
 * Actors with the column `_shown`: the value of the breakdown that they are counted for, null for all values behind the
 * limit, and `_place`, the place of their value. Values that lead further come first.
 */
export function rankedByDepth(plan: FunnelPlan, actors: Select): Select {
  const times = numbersBetween(1, plan.length).map((step) => `_t${step}`);
  const names = ['_actor', '_value', '_depth', ...times];
  const steps = numbersBetween(1, plan.length);
  const counted = stage(actors, [
    ...handedOn(names),
    ...steps.map((step) => `countIf(r._depth >= ${step}) over (partition by r._value) as _c${step}`),
  ]);
  const by = steps.toReversed().map((step) => `r._c${step} desc`);
  return shown(plan, counted, names, by);
}

/** Counts of intervals, of which the columns `_entered` and `_converted` are told, with `_shown` and `_place`. */
export function rankedByEntrance(plan: FunnelPlan, counts: Select): Select {
  const names = ['_value', '_entrance', '_entered', '_converted'];
  const summed = stage(counts, [
    ...handedOn(names),
    'sum(r._entered) over (partition by r._value) as _total',
  ]);
  return shown(plan, summed, names, ['r._total desc']);
}

function shown(plan: FunnelPlan, counted: Select, names: readonly string[], by: readonly string[]): Select {
  const placed = stage(counted, [
    ...handedOn(names),
    `dense_rank() over (order by ${[...by, 'r._value'].join(', ')}) as _place`,
  ]);
  return stage(placed, [
    ...handedOn([...names, '_place']),
    `if(r._place <= ${valueLimit(plan)}, r._value, null) as _shown`,
  ]);
}
