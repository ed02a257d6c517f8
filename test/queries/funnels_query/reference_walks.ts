import { isOf, type ReferenceEvent, type ReferenceFunnel } from './reference_events.ts';

/** How far an actor got: the times of the steps, null for optional steps that were skipped. */
export interface ReferenceProgress {
  readonly depth: number;
  readonly times: readonly (number | null)[];
}

/** Whether an event does a step; the only thing that walks know of steps. */
export type StepTest = (step: number, event: ReferenceEvent) => boolean;

/** Steps from the first one on, known by the time of step 1. */
interface Attempt {
  readonly start: number;
  /** The time of its last step. */
  readonly at: number;
  readonly times: readonly (number | null)[];
}

interface Reached {
  readonly depth: number;
  /** Null if an exclusion bars the attempt. */
  readonly attempt: Attempt | null;
  /** The index of the event. */
  readonly index: number;
}

/**
 * Walks sorted events one by one and remembers the newest attempt at each step. An attempt that has reached a step does not
 * reach it again. In a strict funnel, an event ends all attempts except at the steps that it does; different events at one
 * time end none.
 */
export function walkInOrder(
  funnel: ReferenceFunnel,
  events: readonly ReferenceEvent[],
  isStep: StepTest,
): ReferenceProgress | null {
  const { steps, windowMs, order } = funnel;
  const mixed = mixedTimes(funnel, events);
  const bars = (event: ReferenceEvent, first: number, last: number): boolean =>
    !mixed.has(event.at) && hasExclusionBetween(funnel, event, first, last);
  const reached: Reached[] = [];
  const entered: (Attempt | undefined)[] = steps.map(() => undefined);
  events.forEach((event, index) => {
    const isOpen = (one: Attempt | undefined): one is Attempt =>
      one !== undefined && event.at - one.start <= windowMs;
    for (const step of [...steps.keys()].reverse()) {
      if (!isStep(step, event)) continue;
      let from = step - 1;
      while (from > 0 && !isOpen(entered[from]) && steps[from]?.optional === true) from -= 1;
      const source = step === 0 ? { start: event.at, at: event.at, times: [] } : entered[from];
      if (!isOpen(source) || entered[step]?.start === source.start) continue;
      const isBarred =
        order === 'ordered' &&
        step > 0 &&
        events.some((other) => other.at > source.at && other.at < event.at && bars(other, from + 1, step));
      const skipped = Array.from({ length: step - source.times.length }, () => null);
      const attempt = { start: source.start, at: event.at, times: [...source.times, ...skipped, event.at] };
      reached.push({ depth: step + 1, attempt: isBarred ? null : attempt, index });
      if (!isBarred) entered[step] = attempt;
    }
    if (order === 'strict' && !mixed.has(event.at))
      steps.forEach((definition, step) => {
        if (!isOf(definition, event)) entered[step] = undefined;
      });
  });
  return deepest(funnel, events, reached, bars);
}

/** The times of events that do not all do the same. */
function mixedTimes(funnel: ReferenceFunnel, events: readonly ReferenceEvent[]): ReadonlySet<number> {
  const doings = new Map<number, Set<string>>();
  for (const event of events) {
    const does = funnel.steps.map((step, index) => [
      isOf(step, event),
      index > 0 && hasExclusionBetween(funnel, event, index, index),
    ]);
    doings.set(event.at, (doings.get(event.at) ?? new Set()).add(JSON.stringify(does)));
  }
  return new Set([...doings].filter(([, different]) => different.size > 1).map(([at]) => at));
}

/** Whether an event is an exclusion that must not precede one of these steps. */
const hasExclusionBetween = (
  { exclusions }: ReferenceFunnel,
  event: ReferenceEvent,
  first: number,
  last: number,
): boolean => exclusions.some((one) => isOf(one, event) && one.from < last && one.to >= first);

/** The first attempt of maximum depth that is not barred afterwards. */
function deepest(
  funnel: ReferenceFunnel,
  events: readonly ReferenceEvent[],
  reached: readonly Reached[],
  bars: (event: ReferenceEvent, first: number, last: number) => boolean,
): ReferenceProgress | null {
  const { steps, windowMs, order } = funnel;
  const depth = Math.max(0, ...reached.map((one) => one.depth));
  for (const { attempt, index, depth: own } of reached) {
    if (own !== depth || attempt === null) continue;
    let required = depth;
    while (required < steps.length - 1 && steps[required]?.optional === true) required += 1;
    const behind = order === 'strict' ? events.slice(index + 1, index + 2) : events;
    const isBarred =
      depth < steps.length &&
      behind.some(
        (event) =>
          event.at > attempt.at && event.at - attempt.start <= windowMs && bars(event, depth, required),
      );
    if (!isBarred) return { depth, times: attempt.times };
  }
  return null;
}

/**
 * The steps of a window, each by its oldest event: of all windows that end with an event, the first one with the most steps.
 * With exclusions, the window must start with an event, so that it is clear what is barred.
 */
export function walkInAnyOrder(
  funnel: ReferenceFunnel,
  events: readonly ReferenceEvent[],
  isStep: StepTest,
): ReferenceProgress | null {
  if (funnel.exclusions.length > 0) return walkFromEntry(funnel, events, isStep, () => true);
  let best: ReferenceProgress | null = null;
  events.forEach((event, index) => {
    const window = events.slice(0, index + 1).filter(({ at }) => event.at - at <= funnel.windowMs);
    const times = stepTimes(funnel, window, isStep).sort((one, other) => one - other);
    if (times.length > (best?.depth ?? 0)) best = { depth: times.length, times };
  });
  return best;
}

/** The steps of the windows that start with an event, such as one of an interval of a trend. */
export function walkFromEntry(
  funnel: ReferenceFunnel,
  events: readonly ReferenceEvent[],
  isStep: StepTest,
  isEntrance: (event: ReferenceEvent) => boolean,
): ReferenceProgress | null {
  const { windowMs, steps, exclusions } = funnel;
  const isExcluded = (event: ReferenceEvent): boolean => exclusions.some((one) => isOf(one, event));
  let best: (ReferenceProgress & { readonly counts: boolean }) | null = null;
  for (const [index, event] of events.entries()) {
    if (!isEntrance(event) || !steps.some((_, step) => isStep(step, event))) continue;
    const times = stepTimes(funnel, events.slice(index), isStep)
      .filter((time) => time - event.at <= windowMs)
      .sort((one, other) => one - other);
    const last = Math.max(event.at, ...times);
    const counts = !events.some(
      (other) =>
        isExcluded(other) &&
        other.at > event.at &&
        (times.length === steps.length ? other.at < last : other.at - event.at <= windowMs),
    );
    if (isDeeper({ depth: times.length, counts }, best)) best = { depth: times.length, times, counts };
  }
  return takenEvents(best);
}

interface Graded {
  readonly depth: number;
  readonly counts: boolean;
}

const isDeeper = (one: Graded, best: Graded | null): boolean =>
  best === null || one.depth > best.depth || (one.depth === best.depth && one.counts && !best.counts);

const takenEvents = (
  best: (ReferenceProgress & { readonly counts: boolean }) | null,
): ReferenceProgress | null => (best?.counts === true ? { depth: best.depth, times: best.times } : null);

/** The times of steps by their first events; steps of the same definition take one event each. */
function stepTimes(
  { steps }: ReferenceFunnel,
  events: readonly ReferenceEvent[],
  isStep: StepTest,
): number[] {
  return steps.flatMap((step, index) => {
    const before = steps
      .slice(0, index)
      .filter((other) => other.event === step.event && other.size === step.size).length;
    const event = events.filter((one) => isStep(index, one))[before];
    return event === undefined ? [] : [event.at];
  });
}
