import type { Select } from '../../dialect/ast.ts';
import { countOfAll } from '../sampling.ts';
import { numbersBetween, type FunnelPlan } from './plan.ts';
import { selectFrom } from './select_from.ts';

/** How long actors took from one step to another. */
export interface TimeToConvert {
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
