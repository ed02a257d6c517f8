import type { Select } from '../../dialect/ast.ts';
import { countOfAll } from '../sampling.ts';
import { numbersBetween, type FunnelPlan } from './plan.ts';
import { stage } from './stage.ts';

/** How long actors took from one step to another. */
export interface TimeToConvert {
  /** Pairs of the seconds that a bin begins with, and its actors. */
  readonly bins: readonly (readonly [number, number])[];
  /** Null when nobody converted. */
  readonly average_conversion_time: number | null;
}

const mostBins = { asked: 90, usual: 60 };
/** Seconds of a bin where all actors took the same time. */
const usualWidth = 60;

/** Actors of each bin, with the first second, the width and the number of all bins, and the mean time. */
export function timeToConvertSelect(plan: FunnelPlan, actors: Select): Select {
  const { funnelFromStep, funnelToStep, binCount } = plan.query.funnelsFilter;
  const from = (funnelFromStep ?? 0) + 1;
  const to = (funnelToStep ?? plan.length - 1) + 1;
  const bins =
    binCount === null
      ? `least(${mostBins.usual}, greatest(1, toInt(ceil(cbrt(count() over ())))))`
      : String(Math.min(mostBins.asked, Math.max(1, binCount)));
  const times = stage(actors, [`r._t${to} - r._t${from} as _seconds`], { where: `r._depth >= ${to}` });
  const bounds = stage(times, [
    'r._seconds as _seconds',
    'floor(min(r._seconds) over ()) as _least',
    'ceil(max(r._seconds) over ()) as _most',
    'avg(r._seconds) over () as _average',
    `${bins} as _bins`,
  ]);
  const binned = stage(bounds, [
    ...['_seconds', '_least', '_average', '_bins'].map((name) => `r.${name} as ${name}`),
    `r._most = r._least ? ${usualWidth} : ceil((r._most - r._least) / r._bins) as _width`,
  ]);
  return stage(
    binned,
    [
      'floor((r._seconds - r._least) / r._width) as _bin',
      'count() as _actors',
      'any(r._least) as _from',
      'any(r._width) as _by',
      'any(r._bins) as _count',
      'any(r._average) as _mean',
    ],
    { rest: 'group by _bin' },
  );
}

/** Rows of `timeToConvertSelect` as answers show them. */
export function timeToConvertAnswer(
  { query }: FunnelPlan,
  rows: readonly (readonly unknown[])[],
): TimeToConvert {
  const asked = query.funnelsFilter.binCount;
  const bins = asked === null ? 1 : Math.min(mostBins.asked, Math.max(1, asked));
  const [first = [0, 0, 0, usualWidth, bins, null]] = rows;
  const [from = 0, width = usualWidth, count = bins] = first.slice(2, 5) as readonly number[];
  const people = new Map(rows.map((row) => [row[0], row[1] as number]));
  return {
    bins: numbersBetween(0, count).map(
      (bin) => [from + bin * width, countOfAll(people.get(bin) ?? 0, query.samplingFactor)] as const,
    ),
    average_conversion_time: first[5] as number | null,
  };
}
