import { DateTime } from 'luxon';
import type { Select } from '@exportd/dialect/ast';
import { resolveRange } from '../dates.ts';
import { dayOf, labelOf } from '../buckets.ts';
import { seriesName } from '../nodes.ts';
import { countOfAll } from '../query_fields.ts';
import { formatValue, type FunnelContext, type FunnelPlan, numbersBetween, valueLimit } from './plan.ts';
import { passThrough, selectFrom } from './rows.ts';
import { comparedSteps } from './walks.ts';

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

/** One step of a funnel in results. */
export interface StepResult {
  readonly action_id: string | number | null;
  readonly name: string;
  readonly custom_name: string | null;
  /** Counted from 0. */
  readonly order: number;
  readonly people: readonly [];
  readonly count: number;
  readonly type: 'events' | 'actions';
  /** Seconds since the previous required step; null for the first step, and if no actor did the step. */
  readonly average_conversion_time: number | null;
  readonly median_conversion_time: number | null;
  readonly breakdown?: string | readonly string[];
  /** The id of a cohort, 0 for everyone, if the funnel is broken down by cohorts. */
  readonly breakdown_value?: string | number | readonly string[];
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
  about: FunnelContext,
  rows: readonly (readonly unknown[])[],
): readonly StepResult[] | readonly (readonly StepResult[])[] {
  if (plan.attribution === null) {
    const [row = []] = rows;
    return row[0] ? stepsOf(plan, about, row as readonly (number | null)[]) : [];
  }
  const hidesOther = plan.query.breakdownFilter?.breakdown_hide_other_aggregation === true;
  return rows
    .filter(([value]) => !(hidesOther && value === null))
    .map(([value, ...counts]) => {
      const breakdown = formatValue(plan, value as string | null);
      return stepsOf(plan, about, counts as readonly (number | null)[]).map((step) => ({
        ...step,
        breakdown,
        breakdown_value: breakdown,
      }));
    });
}

function stepsOf(
  plan: FunnelPlan,
  { project }: FunnelContext,
  counts: readonly (number | null)[],
): readonly StepResult[] {
  const { length, query, order } = plan;
  return query.series.slice(0, length).map((node, index) => ({
    ...(order === 'unordered'
      ? { action_id: null, name: `Completed ${index + 1} step${index === 0 ? '' : 's'}`, custom_name: null }
      : {
          action_id: node.kind === 'EventsNode' ? (node.event ?? null) : node.id,
          name: seriesName(node, project),
          custom_name: node.custom_name ?? null,
        }),
    order: index,
    people: [],
    count: countOfAll(counts[index] ?? 0, query.samplingFactor),
    type: node.kind === 'ActionsNode' && order !== 'unordered' ? 'actions' : 'events',
    average_conversion_time: index === 0 ? null : (counts[length + index - 1] ?? null),
    median_conversion_time: index === 0 ? null : (counts[2 * length + index - 2] ?? null),
  }));
}

/** How long actors took from one step to another. */
interface TimeToConvert {
  /** Pairs of the first second of a bin and its number of actors. */
  readonly bins: readonly (readonly [number, number])[];
  /** Null if no actor converted. */
  readonly average_conversion_time: number | null;
}

const maxBins = { requested: 90, automatic: 60 };
/** Width of a bin in seconds if all actors took equally long. */
const defaultWidth = 60;

/** Counts the actors of each bin, with the first second, the width and the number of all bins, and the mean time. */
export function timeToConvertSelect(plan: FunnelPlan, actors: Select): Select {
  const { funnelFromStep, funnelToStep, binCount } = plan.query.funnelsFilter;
  const from = (funnelFromStep ?? 0) + 1;
  const to = (funnelToStep ?? plan.length - 1) + 1;
  const bins =
    binCount === null
      ? `least(${maxBins.automatic}, greatest(1, toInt(ceil(cbrt(count() over ())))))`
      : String(Math.min(maxBins.requested, Math.max(1, binCount)));
  const times = selectFrom(actors, [`r._t${to} - r._t${from} as _seconds`], { where: `r._depth >= ${to}` });
  const bounds = selectFrom(times, [
    'r._seconds as _seconds',
    'floor(min(r._seconds) over ()) as _min',
    'ceil(max(r._seconds) over ()) as _max',
    'avg(r._seconds) over () as _average',
    `${bins} as _bins`,
  ]);
  const binned = selectFrom(bounds, [
    ...['_seconds', '_min', '_average', '_bins'].map((name) => `r.${name} as ${name}`),
    `r._max = r._min ? ${defaultWidth} : ceil((r._max - r._min) / r._bins) as _width`,
  ]);
  return selectFrom(
    binned,
    [
      'floor((r._seconds - r._min) / r._width) as _bin',
      'count() as _actors',
      'any(r._min) as _from',
      'any(r._width) as _by',
      'any(r._bins) as _count',
      'any(r._average) as _mean',
    ],
    { rest: 'group by _bin' },
  );
}

/** Converts rows of `timeToConvertSelect` to a result. */
export function timeToConvertResult(
  { query }: FunnelPlan,
  rows: readonly (readonly unknown[])[],
): TimeToConvert {
  const requested = query.funnelsFilter.binCount;
  const bins = requested === null ? 1 : Math.min(maxBins.requested, Math.max(1, requested));
  const [first = [0, 0, 0, defaultWidth, bins, null]] = rows;
  const [from = 0, width = defaultWidth, count = bins] = first.slice(2, 5) as readonly number[];
  const people = new Map(rows.map((row) => [row[0], row[1] as number]));
  return {
    bins: numbersBetween(0, count).map(
      (bin) => [from + bin * width, countOfAll(people.get(bin) ?? 0, query.samplingFactor)] as const,
    ),
    average_conversion_time: first[5] as number | null,
  };
}

/** The conversion rate of the actors that entered in each interval. */
export interface FunnelTrend {
  /** Number of points. */
  readonly count: number;
  /** Percent with two decimals; 0 if no actor entered. */
  readonly data: readonly number[];
  readonly days: readonly string[];
  readonly labels: readonly string[];
  /** The id of a cohort, 0 for everyone, if the funnel is broken down by cohorts. */
  readonly breakdown_value?: string | number | readonly string[];
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
