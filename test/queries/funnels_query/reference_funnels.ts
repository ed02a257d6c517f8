import { isOf, sortedEvents, type PlainEvent, type PlainFunnel } from './reference_events.ts';
import {
  walkFromEntrance,
  walkInAnyOrder,
  walkInOrder,
  type PlainReach,
  type StepTest,
} from './reference_walks.ts';

/** Who came how far, for which value of the breakdown and in which interval of a trend. */
export interface PlainActor extends PlainReach {
  readonly actor: string;
  readonly value: string;
  readonly entrance: number | null;
}

const valueOf = ({ breakdowns }: PlainFunnel, event: PlainEvent): string =>
  breakdowns.length === 0 || breakdowns.every((name) => !event[name])
    ? ''
    : JSON.stringify(breakdowns.map((name) => event[name] ?? ''));

/** All actors of a funnel; `bucketOf` gives the interval of an event for a trend. */
export function plainActors(
  funnel: PlainFunnel,
  events: readonly PlainEvent[],
  bucketOf: ((event: PlainEvent) => number) | null,
): readonly PlainActor[] {
  const actors = [...new Set(events.map(({ actor }) => actor))];
  return actors.flatMap((actor) => {
    const own = sortedEvents(
      funnel,
      events.filter((event) => event.actor === actor),
    );
    return valuesOf(funnel, own).flatMap(({ value, walked, isStep }): readonly PlainActor[] => {
      if (bucketOf === null) {
        const walk = funnel.order === 'unordered' ? walkInAnyOrder : walkInOrder;
        const reach = walk(funnel, walked, isStep);
        return reach === null || reach.depth === 0 ? [] : [{ ...reach, actor, value, entrance: null }];
      }
      return [...new Set(walked.map(bucketOf))].flatMap((entrance) => {
        const isEntrance = (event: PlainEvent): boolean => bucketOf(event) === entrance;
        const reach =
          funnel.order === 'unordered'
            ? walkFromEntrance(funnel, walked, isStep, isEntrance)
            : walkInOrder(
                funnel,
                walked,
                (step, event) => isStep(step, event) && (step > 0 || isEntrance(event)),
              );
        return reach === null || reach.depth === 0 ? [] : [{ ...reach, actor, value, entrance }];
      });
    });
  });
}

interface ValueWalk {
  readonly value: string;
  readonly walked: readonly PlainEvent[];
  readonly isStep: StepTest;
}

function valuesOf(funnel: PlainFunnel, events: readonly PlainEvent[]): readonly ValueWalk[] {
  const { attribution, steps, breakdowns } = funnel;
  const isStep: StepTest = (step, event) => {
    const definition = steps[step];
    return definition !== undefined && isOf(definition, event);
  };
  const values = events.map((event) => valueOf(funnel, event));
  if (breakdowns.length === 0) return [{ value: '', walked: events, isStep }];
  if (attribution === 'all_events')
    return [...new Set(values)].map((value) => ({
      value,
      walked: events.filter((event) => valueOf(funnel, event) === value),
      isStep,
    }));
  if (typeof attribution === 'object') {
    const { step } = attribution;
    const ofStep = events.filter((event) => isStep(step, event)).map((event) => valueOf(funnel, event));
    return [...new Set(ofStep.length === 0 ? [''] : ofStep)].map((value) => ({
      value,
      walked: events,
      isStep: (one, event) =>
        isStep(one, event) && (!isSame(funnel, one, step) || valueOf(funnel, event) === value),
    }));
  }
  const ordered = attribution === 'first_touch' ? values : values.toReversed();
  return [{ value: ordered.find((value) => value !== '') ?? '', walked: events, isStep }];
}

/** In any order, steps of the same definition are not told apart. */
const isSame = ({ steps, order }: PlainFunnel, one: number, other: number): boolean =>
  one === other ||
  (order === 'unordered' &&
    steps[one]?.event === steps[other]?.event &&
    steps[one]?.size === steps[other]?.size);
