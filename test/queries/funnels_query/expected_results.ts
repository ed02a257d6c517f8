import type { FunnelTrend, StepResult } from '../../../src/queries/funnels_query/results.ts';
import { referenceRates, referenceSteps, referenceTimes, rankedValues } from './reference_results.ts';
import type { ReferenceEvent, ReferenceFunnel } from './reference_events.ts';
import { referenceActors, type ReferenceActor } from './reference_funnels.ts';
import { firstTime, type RandomFunnel } from './random_funnels.ts';

const hour = 3_600_000;
const bucketOf = (event: ReferenceEvent): number => Math.floor(event.at / hour) * hour;
/** The hours of the range, including the repeated one. */
const buckets = Array.from({ length: 9 }, (_, index) => firstTime + index * hour);
const isInRange = ({ at }: ReferenceEvent): boolean => at >= firstTime && at < firstTime + 9 * hour;

/** A single property of groups is a plain value, others are lists. */
const formatValue = (
  { funnel, breakdownType }: RandomFunnel,
  value: string | null,
): string | undefined | readonly string[] => {
  const none = funnel.breakdowns.map(() => '');
  const values = value === null ? ['Other'] : value === '' ? none : (JSON.parse(value) as string[]);
  return breakdownType === 'group' && funnel.breakdowns.length === 1 ? values[0] : values;
};

const rounded = (value: number | null): number | null =>
  value === null ? null : Math.round(value * 1e6) / 1e6;

const ofSteps = (steps: readonly StepResult[]) =>
  steps.map((step) => [
    step.count,
    rounded(step.average_conversion_time),
    rounded(step.median_conversion_time),
  ]);
const referenceOfSteps = (funnel: ReferenceFunnel, actors: readonly ReferenceActor[]) =>
  referenceSteps(funnel, actors).map((step) => [step.count, rounded(step.average), rounded(step.median)]);

/** The expected result of a funnel, by the reference implementation. */
export function expectedResult(random: RandomFunnel, events: readonly ReferenceEvent[]): unknown {
  const { funnel, viz, from, to, binCount } = random;
  const seen = events.filter(isInRange);
  if (viz === 'trends') {
    const attributed =
      typeof funnel.attribution === 'object' && funnel.breakdowns.length > 0 ? funnel.attribution.step : 0;
    const length = Math.max(to, attributed) + 1;
    const walked: ReferenceFunnel = {
      ...funnel,
      steps: funnel.steps.slice(0, length),
      exclusions: funnel.exclusions.filter((one) => one.from + 1 < length),
    };
    const actors = referenceActors(walked, seen, bucketOf);
    if (funnel.breakdowns.length === 0) return [referenceRates(actors, { from, to, buckets })];
    return rankedValues(funnel, actors, (own) => [own.filter(({ depth }) => depth > from).length]).map(
      (one) => [formatValue(random, one.value), referenceRates(one.actors, { from, to, buckets })],
    );
  }
  const actors = referenceActors(funnel, seen, null);
  if (viz === 'time_to_convert') {
    const { factor = 1 } = funnel;
    const times = referenceTimes(actors, { from, to, binCount, factor });
    return { ...times, average_conversion_time: rounded(times.average_conversion_time) };
  }
  if (funnel.breakdowns.length === 0) return actors.length === 0 ? [] : referenceOfSteps(funnel, actors);
  const depths = funnel.steps.map((_, index) => index).toReversed();
  return rankedValues(funnel, actors, (own) =>
    depths.map((index) => own.filter(({ depth }) => depth > index).length),
  ).map((one) => [formatValue(random, one.value), referenceOfSteps(funnel, one.actors)]);
}

/** A result in the form that is compared. */
export function actualResult({ funnel, viz }: RandomFunnel, results: unknown): unknown {
  const isBrokenDown = funnel.breakdowns.length > 0;
  if (viz === 'time_to_convert') {
    const times = results as ReturnType<typeof referenceTimes>;
    return { ...times, average_conversion_time: rounded(times.average_conversion_time) };
  }
  if (viz === 'trends')
    return (results as FunnelTrend[]).map(({ data, breakdown_value }) =>
      isBrokenDown ? [breakdown_value, data] : data,
    );
  if (!isBrokenDown) return ofSteps(results as StepResult[]);
  return (results as StepResult[][]).map((steps) => [steps[0]?.breakdown_value, ofSteps(steps)]);
}
