import type { Select } from '../../dialect/ast.ts';
import type { FunnelContext } from './funnel_context.ts';
import type { Attempts } from './attempts.ts';
import { funnelRows } from './funnel_rows.ts';
import { numbersBetween, type FunnelPlan } from './plan.ts';
import { passThrough, selectFrom } from './select_from.ts';
import { walkBackward } from './walk_backward.ts';
import { walkInAnyOrder } from './walk_in_any_order.ts';
import { walkInOrder } from './walk_in_order.ts';

/**
 * How far each actor got: one row for each actor (and breakdown value, and interval of a trend) that did a step, with
 * `_actor`, `_value`, `_entrance`, `_depth` and the times of the steps `_t1`, `_t2`, …, null for steps that were not
 * done.
 * @throws QueryError
 */
export function funnelActorRows(plan: FunnelPlan, about: FunnelContext): Select {
  const rows = funnelRows(plan, about);
  const isInOrder = plan.order !== 'unordered';
  if (plan.splitsByEntry && isInOrder && !plan.walksByEntry) return walkBackward(plan, rows);
  const attempts = isInOrder ? walkInOrder(plan, rows) : walkInAnyOrder(plan, rows);
  const best = bestAttempts(plan, attempts);
  return isInOrder || plan.splitsByEntry ? best : sortTimes(plan, best);
}

const timesOf = ({ length }: FunnelPlan): readonly string[] =>
  numbersBetween(1, length).map((step) => `_t${step}`);

/**
 * Selects an actor's first attempt of maximum depth. Actors whose attempts are all barred by exclusions are dropped.
 */
function bestAttempts(plan: FunnelPlan, { select, keys, order, extraColumns }: Attempts): Select {
  const hasExclusions = plan.guarded.length > 0;
  const names = [...keys, ...extraColumns, '_depth', ...timesOf(plan)];
  const keySql = keys.map((name) => `r.${name}`).join(', ');
  const by = [
    'r._depth desc',
    ...(hasExclusions ? ['r._counts desc'] : []),
    ...order.map((name) => `r.${name}${plan.splitsByEntry && plan.order === 'unordered' ? ' desc' : ''}`),
  ];
  const best = selectFrom(
    select,
    [
      `distinct on (${keySql}) ${[...passThrough(names), ...(hasExclusions ? ['r._counts as _counts'] : [])].join(', ')}`,
    ],
    { rest: `order by ${[keySql, ...by].join(', ')}` },
  );
  return hasExclusions ? selectFrom(best, passThrough(names), { where: 'r._counts' }) : best;
}

/** Later than any event. */
const never = "TIMESTAMP '9999-12-31 00:00:00'";

/** Sorts the times of steps that were done in any order, by an odd-even transposition sort. */
function sortTimes(plan: FunnelPlan, best: Select): Select {
  const times = timesOf(plan);
  const others = ['_actor', ...(plan.attribution === null ? [] : ['_value']), '_depth'];
  let sorted = selectFrom(best, [
    ...passThrough(others),
    ...times.map((name) => `ifNull(r.${name}, ${never}) as ${name}`),
  ]);
  for (let round = 0; round < times.length; round += 1) {
    const columns = times.map((name, index) => {
      const isUpper = index % 2 === round % 2;
      const neighbour = times[isUpper ? index + 1 : index - 1];
      return neighbour === undefined
        ? `r.${name} as ${name}`
        : `${isUpper ? 'least' : 'greatest'}(r.${name}, r.${neighbour}) as ${name}`;
    });
    // OFFSET keeps PostgreSQL from inlining each round into the next one.
    sorted = selectFrom(sorted, [...passThrough(others), ...columns], { rest: 'offset 0' });
  }
  return selectFrom(sorted, [
    ...passThrough(others),
    ...times.map((name, index) => `if(r._depth > ${index}, r.${name}, null) as ${name}`),
  ]);
}
