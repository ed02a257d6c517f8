import { DateTime } from 'luxon';
import type { Select } from '../../dialect/ast.ts';
import { resolveRange } from '../dates/date_range.ts';
import { dayOf, labelOf } from '../dates/labels.ts';
import type { FunnelContext } from './funnel_context.ts';
import type { FunnelPlan } from './plan.ts';
import { withRanks } from './ranked_values.ts';
import { formatValue } from './breakdown_value.ts';
import { selectFrom } from './select_from.ts';
import { comparedSteps } from './walk_backward.ts';

/** The conversion rate of the actors that entered in each interval. */
export interface FunnelTrend {
  /** Number of points. */
  readonly count: number;
  /** Percent with two decimals; 0 if no actor entered. */
  readonly data: readonly number[];
  readonly days: readonly string[];
  readonly labels: readonly string[];
  readonly breakdown_value?: string | readonly string[];
}

/** Counts actors that entered and that converted, by interval and breakdown value. */
export function trendsSelect(plan: FunnelPlan, actors: Select): Select {
  const { from, to } = comparedSteps(plan);
  const isBrokenDown = plan.attribution !== null;
  const keys = isBrokenDown ? ['_value', '_entrance'] : ['_entrance'];
  const grouped = `group by ${keys.map((name) => `r.${name}`).join(', ')}`;
  const counts = selectFrom(
    actors,
    [
      ...keys.map((name) => `r.${name} as ${name}`),
      `countIf(r._depth >= ${from}) as _entered`,
      `countIf(r._depth >= ${to}) as _converted`,
    ],
    { rest: grouped },
  );
  if (!isBrokenDown) return counts;
  return selectFrom(
    withRanks(plan, counts, ['_entrance', '_entered', '_converted'], ['sum(r._entered)']),
    [
      'r._shown as _shown',
      'r._entrance as _at',
      'sum(r._entered) as _all',
      'sum(r._converted) as _done',
      'min(r._rank) as _first',
    ],
    { rest: 'group by r._shown, r._entrance order by _first' },
  );
}

/** Converts rows of `trendsSelect` to results. */
export function trendsResult(
  plan: FunnelPlan,
  about: FunnelContext,
  rows: readonly (readonly unknown[])[],
): readonly FunnelTrend[] {
  if (plan.attribution === null) return [trendOf(plan, about, rows)];
  const hidesOther = plan.query.breakdownFilter?.breakdown_hide_other_aggregation === true;
  const ranks = new Map<string | null, number>();
  for (const row of rows) {
    const [value, rank] = [row[0] as string | null, row[4] as number];
    ranks.set(value, Math.min(ranks.get(value) ?? Infinity, rank));
  }
  return [...ranks]
    .filter(([value]) => !(hidesOther && value === null))
    .sort(([, one], [, other]) => one - other)
    .map(([value]) => ({
      ...trendOf(
        plan,
        about,
        rows.filter((row) => row[0] === value).map((row) => row.slice(1)),
      ),
      breakdown_value: formatValue(plan, value),
    }));
}

function trendOf(plan: FunnelPlan, about: FunnelContext, rows: readonly (readonly unknown[])[]): FunnelTrend {
  const { interval, dateRange } = plan.query;
  const range = resolveRange(dateRange, interval, about);
  const counts = new Map(
    rows.map(([entrance, entered, converted]) => [
      DateTime.fromISO(entrance as string, { zone: about.project.timezone }).toMillis(),
      [entered as number, converted as number] as const,
    ]),
  );
  const data = range.buckets.map((bucket) => {
    const [entered, converted] = counts.get(bucket.toMillis()) ?? [0, 0];
    return entered === 0 ? 0 : Math.round((converted / entered) * 10_000) / 100;
  });
  return {
    count: data.length,
    data,
    days: range.buckets.map((bucket) => dayOf(bucket, interval)),
    labels: range.buckets.map((bucket) => labelOf(bucket, interval, range)),
  };
}
