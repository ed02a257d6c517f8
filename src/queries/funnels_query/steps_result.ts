import type { Select } from '../../dialect/ast.ts';
import { countOfAll } from '../sampling.ts';
import { seriesName } from '../series/condition.ts';
import { numbersBetween, type FunnelPlan } from './plan.ts';
import { depthMeasures, withRanks } from './ranked_values.ts';
import { formatValue } from './breakdown_value.ts';
import { selectFrom } from './select_from.ts';

/** One step of a funnel in results. */
export interface StepResult {
  readonly action_id: string | number | null;
  readonly name: string;
  readonly custom_name: string | null;
  /** Counted from 0. */
  readonly order: number;
  readonly people: readonly [];
  readonly count: number;
  readonly type: 'events';
  /** Seconds since the previous required step; null for the first step, and if no actor did the step. */
  readonly average_conversion_time: number | null;
  readonly median_conversion_time: number | null;
  readonly breakdown?: string | readonly string[];
  readonly breakdown_value?: string | readonly string[];
}

/** Counts actors and the times between steps, for each breakdown value. */
export function stepsSelect(plan: FunnelPlan, actors: Select): Select {
  const steps = numbersBetween(1, plan.length);
  const isBrokenDown = plan.attribution !== null;
  const times = steps.slice(1).map((step) => secondsBefore(plan, step));
  const columns = [
    ...(isBrokenDown ? ['r._shown as _shown'] : []),
    ...steps.map((step) => `countIf(${isReached(plan, step)}) as _count${step}`),
    ...times.map((time, index) => `avg(${time}) as _average${index + 2}`),
    ...times.map((time, index) => `median(${time}) as _median${index + 2}`),
  ];
  if (!isBrokenDown) return selectFrom(actors, columns);
  const names = ['_depth', ...steps.map((step) => `_t${step}`)];
  return selectFrom(withRanks(plan, actors, names, depthMeasures(plan)), columns, {
    rest: 'group by r._shown order by min(r._rank)',
  });
}

/**
 * The condition that an actor reached a step: an optional step must be done itself, a required one is reached by depth.
 */
export const isReached = ({ optional }: FunnelPlan, step: number): string =>
  optional[step - 1] ? `r._t${step} is not null` : `r._depth >= ${step}`;

/** The time since the previous required step. */
function secondsBefore({ optional }: FunnelPlan, step: number): string {
  const before = numbersBetween(1, step - 1).findLast((one) => !optional[one - 1]) ?? 1;
  return `r._t${step} - r._t${before}`;
}

/** Converts rows of `stepsSelect` to a list of steps, or a list of such lists; empty if no actor entered. */
export function stepsResult(
  plan: FunnelPlan,
  rows: readonly (readonly unknown[])[],
): readonly StepResult[] | readonly (readonly StepResult[])[] {
  if (plan.attribution === null) {
    const [row = []] = rows;
    return row[0] ? stepsOf(plan, row as readonly (number | null)[]) : [];
  }
  const hidesOther = plan.query.breakdownFilter?.breakdown_hide_other_aggregation === true;
  return rows
    .filter(([value]) => !(hidesOther && value === null))
    .map(([value, ...counts]) => {
      const breakdown = formatValue(plan, value as string | null);
      return stepsOf(plan, counts as readonly (number | null)[]).map((step) => ({
        ...step,
        breakdown,
        breakdown_value: breakdown,
      }));
    });
}

function stepsOf(plan: FunnelPlan, counts: readonly (number | null)[]): readonly StepResult[] {
  const { length, query, order } = plan;
  return query.series.slice(0, length).map((node, index) => ({
    ...(order === 'unordered'
      ? { action_id: null, name: `Completed ${index + 1} step${index === 0 ? '' : 's'}`, custom_name: null }
      : {
          action_id: node.kind === 'EventsNode' ? (node.event ?? null) : node.id,
          name: seriesName({ ...node, custom_name: null }),
          custom_name: node.custom_name ?? null,
        }),
    order: index,
    people: [],
    count: countOfAll(counts[index] ?? 0, query.samplingFactor),
    type: 'events',
    average_conversion_time: index === 0 ? null : (counts[length + index - 1] ?? null),
    median_conversion_time: index === 0 ? null : (counts[2 * length + index - 2] ?? null),
  }));
}
