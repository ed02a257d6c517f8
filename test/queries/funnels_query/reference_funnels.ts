import { isOf, sortedEvents, type ReferenceEvent, type ReferenceFunnel } from './reference_events.ts';
import {
  walkFromEntry,
  walkInAnyOrder,
  walkInOrder,
  type ReferenceProgress,
  type StepTest,
} from './reference_walks.ts';

/** How far an actor got, for a breakdown value and in an interval of a trend. */
export interface ReferenceActor extends ReferenceProgress {
  readonly actor: string;
  readonly value: string;
  readonly entrance: number | null;
}

const valueOf = ({ breakdowns }: ReferenceFunnel, event: ReferenceEvent): string =>
  breakdowns.length === 0 || breakdowns.every((name) => !event[name])
    ? ''
    : JSON.stringify(breakdowns.map((name) => event[name] ?? ''));

/** All actors of a funnel. `bucketOf` returns the interval of an event for a trend. */
export function referenceActors(
  funnel: ReferenceFunnel,
  events: readonly ReferenceEvent[],
  bucketOf: ((event: ReferenceEvent) => number) | null,
): readonly ReferenceActor[] {
  const actors = [...new Set(events.map(({ actor }) => actor))];
  return actors.flatMap((actor) => {
    const own = sortedEvents(
      funnel,
      events.filter((event) => event.actor === actor),
    );
    return valuesOf(funnel, own).flatMap(({ value, walked, isStep }): readonly ReferenceActor[] => {
      if (bucketOf === null) {
        const walk = funnel.order === 'unordered' ? walkInAnyOrder : walkInOrder;
        const reach = walk(funnel, walked, isStep);
        return reach === null || reach.depth === 0 ? [] : [{ ...reach, actor, value, entrance: null }];
      }
      return [...new Set(walked.map(bucketOf))].flatMap((entrance) => {
        const isEntrance = (event: ReferenceEvent): boolean => bucketOf(event) === entrance;
        const reach =
          funnel.order === 'unordered'
            ? walkFromEntry(funnel, walked, isStep, isEntrance)
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
  readonly walked: readonly ReferenceEvent[];
  readonly isStep: StepTest;
}

function valuesOf(funnel: ReferenceFunnel, events: readonly ReferenceEvent[]): readonly ValueWalk[] {
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

/** In any order, steps of the same definition are not distinguished. */
const isSame = ({ steps, order }: ReferenceFunnel, one: number, other: number): boolean =>
  one === other ||
  (order === 'unordered' &&
    steps[one]?.event === steps[other]?.event &&
    steps[one]?.size === steps[other]?.size);
