import type { ReferenceActor } from './reference_funnels.ts';
import type { ReferenceFunnel } from './reference_events.ts';

interface ReferenceStep {
  readonly count: number;
  readonly average: number | null;
  readonly median: number | null;
}

/** Values in the order of results, each with its actors; null stands for all others. */
export function rankedValues(
  { limit }: ReferenceFunnel,
  actors: readonly ReferenceActor[],
  ranks: (ofValue: readonly ReferenceActor[]) => readonly number[],
): readonly { readonly value: string | null; readonly actors: readonly ReferenceActor[] }[] {
  const values = [...new Set(actors.map(({ value }) => value))].map((value) => {
    const own = actors.filter((actor) => actor.value === value);
    return { value, actors: own, ranks: ranks(own) };
  });
  values.sort((one, other) => {
    for (const [index, rank] of one.ranks.entries()) {
      const difference = (other.ranks[index] ?? 0) - rank;
      if (difference !== 0) return difference;
    }
    return one.value < other.value ? -1 : 1;
  });
  const rest = values.slice(limit);
  return [
    ...values.slice(0, limit),
    ...(rest.length === 0 ? [] : [{ value: null, actors: rest.flatMap((one) => one.actors) }]),
  ];
}

export function referenceSteps(
  { steps, factor = 1 }: ReferenceFunnel,
  actors: readonly ReferenceActor[],
): readonly ReferenceStep[] {
  return steps.map((step, index) => {
    const done = actors.filter((actor) =>
      step.optional ? typeof actor.times[index] === 'number' : actor.depth > index,
    );
    let before = index - 1;
    while (before > 0 && steps[before]?.optional === true) before -= 1;
    const seconds = done
      .map((actor) => ((actor.times[index] ?? 0) - (actor.times[before] ?? 0)) / 1_000)
      .sort((one, other) => one - other);
    const hasTimes = index > 0 && seconds.length > 0;
    const [low, high] = [
      seconds[Math.floor((seconds.length - 1) / 2)] ?? 0,
      seconds[Math.ceil((seconds.length - 1) / 2)] ?? 0,
    ];
    return {
      count: Math.round(done.length / factor),
      average: hasTimes ? seconds.reduce((sum, one) => sum + one, 0) / seconds.length : null,
      median: hasTimes ? (low + high) / 2 : null,
    };
  });
}

export function referenceTimes(
  actors: readonly ReferenceActor[],
  { from, to, binCount, factor = 1 }: { from: number; to: number; binCount: number | null; factor?: number },
): { bins: readonly (readonly [number, number])[]; average_conversion_time: number | null } {
  const seconds = actors
    .filter(({ depth }) => depth > to)
    .map(({ times }) => ((times[to] ?? 0) - (times[from] ?? 0)) / 1_000);
  const count =
    binCount === null
      ? Math.min(60, Math.max(1, Math.ceil(Math.cbrt(seconds.length))))
      : Math.min(90, Math.max(1, binCount));
  const least = seconds.length === 0 ? 0 : Math.floor(Math.min(...seconds));
  const most = seconds.length === 0 ? 0 : Math.ceil(Math.max(...seconds));
  const width = Math.ceil((most - least) / count) || 60;
  return {
    bins: Array.from({ length: count + 1 }, (_, bin) => [
      least + bin * width,
      Math.round(seconds.filter((one) => Math.floor((one - least) / width) === bin).length / factor),
    ]),
    average_conversion_time:
      seconds.length === 0 ? null : seconds.reduce((sum, one) => sum + one, 0) / seconds.length,
  };
}

export function referenceRates(
  actors: readonly ReferenceActor[],
  { from, to, buckets }: { from: number; to: number; buckets: readonly number[] },
): readonly number[] {
  return buckets.map((bucket) => {
    const own = actors.filter(({ entrance }) => entrance === bucket);
    const entered = own.filter(({ depth }) => depth > from).length;
    const converted = own.filter(({ depth }) => depth > to).length;
    return entered === 0 ? 0 : Math.round((converted / entered) * 10_000) / 100;
  });
}
