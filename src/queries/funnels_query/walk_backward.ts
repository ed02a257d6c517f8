import type { Select } from '../../dialect/ast.ts';
import { numbersBetween, type FunnelPlan } from './plan.ts';
import { columnsOf, matchesStep, type FunnelRows } from './rows.ts';
import { passThrough, selectFrom } from './select_from.ts';

/**
 * How far actors got, by the interval in which they entered, for a trend without exclusions. Walks the rows backward
 * and finds, for each event of step 1, when the following steps are first done. Each row is visited once, however many
 * intervals it can be reached from. `_depth` distinguishes only the steps that the trend compares.
 */
export function walkBackward(plan: FunnelPlan, rows: FunnelRows): Select {
  const names = columnsOf(rows);
  const { from, to } = comparedSteps(plan);
  const targets = from === 1 || from === to ? [to] : [from, to];
  const descending = rows.order.map((name) => `r.${name} desc`).join(', ');
  const window = `partition by ${rows.keys.map((name) => `r.${name}`).join(', ')} order by ${descending}`;
  const isStrict = plan.order === 'strict';
  let select = selectFrom(rows.select, [
    ...passThrough(names),
    ...targets.map((target) => doneFrom(plan, target, target)),
  ]);
  for (let step = to; step > 1; step -= 1) {
    const open = targets.filter((target) => target >= step);
    const waiting = targets.filter((target) => target < step);
    const next = selectFrom(
      select,
      [
        ...passThrough([...names, ...waiting.map(doneName)]),
        ...open.map((target) => {
          const done = isStrict ? `lag(r.${doneName(target)})` : `min(r.${doneName(target)})`;
          return `if(${matchesStep(plan, step - 1)}, ${done} over w, null) as ${doneName(target)}`;
        }),
      ],
      {
        window: isStrict ? window : `${window} rows between unbounded preceding and 1 preceding`,
      },
    );
    // Actors that got no further still entered, so the last SELECT drops no rows.
    const isPruned = !isStrict && step > 2;
    select = isPruned
      ? selectFrom(next, passThrough([...names, ...targets.map(doneName)]), {
          where: isNeeded(plan, targets, step - 1),
        })
      : next;
  }
  return byInterval(plan, rows, select);
}

/** The steps that a trend compares. */
export function comparedSteps({ query }: FunnelPlan): { readonly from: number; readonly to: number } {
  const { funnelFromStep, funnelToStep } = query.funnelsFilter;
  return { from: (funnelFromStep ?? 0) + 1, to: (funnelToStep ?? query.series.length - 1) + 1 };
}

/** The column with the time at which all steps from a row's own to the target are done. */
const doneName = (target: number): string => `_done${target}`;

const doneFrom = (plan: FunnelPlan, step: number, target: number): string =>
  `if(${matchesStep(plan, step)}, r._at, null) as ${doneName(target)}`;

/** The condition that a row leads to a target, from this step or possibly from an earlier one. */
function isNeeded(plan: FunnelPlan, targets: readonly number[], step: number): string {
  return [
    ...targets.map((target) => `r.${doneName(target)} is not null`),
    ...numbersBetween(1, step - 1).map((one) => matchesStep(plan, one)),
  ].join(' or ');
}

function byInterval(plan: FunnelPlan, rows: FunnelRows, select: Select): Select {
  const { from, to } = comparedSteps(plan);
  const reached = (target: number): string =>
    `ifNull(r.${doneName(target)} <= r._at + ${plan.windowSeconds}, false)`;
  const depth = [
    `${reached(to)}, ${to}`,
    ...(from > 1 && from < to ? [`${reached(from)}, ${from}`] : []),
    '1',
  ].join(', ');
  const keys = [...rows.keys, ...rows.extraColumns.filter((name) => name === '_value')];
  const entered = selectFrom(
    select,
    [...passThrough(keys), 'r._bucket as _entrance', `multiIf(${depth}) as _depth`],
    { where: matchesStep(plan, 1) },
  );
  const grouped = [...keys, '_entrance'];
  return selectFrom(entered, [...passThrough(grouped), 'max(r._depth) as _depth'], {
    rest: `group by ${grouped.map((name) => `r.${name}`).join(', ')}`,
  });
}
