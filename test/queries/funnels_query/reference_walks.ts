import { isOf, type PlainEvent, type PlainFunnel } from './reference_events.ts';

/** How far somebody came: when each step was done, null for optional ones that were not. */
export interface PlainReach {
  readonly depth: number;
  readonly times: readonly (number | null)[];
}

/** Whether an event is of a step; the walks ask nobody else. */
export type StepTest = (step: number, event: PlainEvent) => boolean;

interface Attempt {
  readonly start: number;
  /** When its last step was done. */
  readonly at: number;
  readonly times: readonly (number | null)[];
}

interface Reached {
  readonly depth: number;
  /** Null where an exclusion stood in the way. */
  readonly attempt: Attempt | null;
  /** The place of the event among all. */
  readonly place: number;
}

/** Goes through sorted events one by one, and remembers the newest attempt that has reached each step. */
export function walkInOrder(
  funnel: PlainFunnel,
  events: readonly PlainEvent[],
  isStep: StepTest,
): PlainReach | null {
  const { steps, windowMs, order } = funnel;
  const reached: Reached[] = [];
  let entered: (Attempt | undefined)[] = [];
  events.forEach((event, place) => {
    const next: (Attempt | undefined)[] = order === 'strict' ? [] : [...entered];
    for (let step = steps.length - 1; step >= 0; step -= 1) {
      if (!isStep(step, event)) continue;
      if (step === 0) {
        next[0] = { start: event.at, at: event.at, times: [event.at] };
        reached.push({ depth: 1, attempt: next[0], place });
        continue;
      }
      let from = step - 1;
      const isOpen = (one: Attempt | undefined): one is Attempt =>
        one !== undefined && event.at - one.start <= windowMs;
      while (!isOpen(entered[from]) && from > 0 && steps[from]?.optional === true) from -= 1;
      const source = entered[from];
      if (!isOpen(source)) continue;
      const isBarred = events.some(
        (other) => other.at > source.at && other.at < event.at && barsBetween(funnel, other, from + 1, step),
      );
      if (isBarred) {
        reached.push({ depth: step + 1, attempt: null, place });
        continue;
      }
      const times = [...source.times];
      while (times.length < step) times.push(null);
      const attempt = { start: source.start, at: event.at, times: [...times, event.at] };
      next[step] = attempt;
      reached.push({ depth: step + 1, attempt, place });
    }
    entered = next;
  });
  return deepest(funnel, events, reached);
}

/** Whether an event is an exclusion that may not stand before one of these steps. */
const barsBetween = ({ exclusions }: PlainFunnel, event: PlainEvent, first: number, last: number): boolean =>
  exclusions.some((one) => isOf(one, event) && one.from < last && one.to >= first);

/** The first attempt that came as far as any, and that nothing followed that should not. */
function deepest(
  funnel: PlainFunnel,
  events: readonly PlainEvent[],
  reached: readonly Reached[],
): PlainReach | null {
  const { steps, windowMs, order } = funnel;
  const depth = Math.max(0, ...reached.map((one) => one.depth));
  for (const { attempt, place, depth: own } of reached) {
    if (own !== depth || attempt === null) continue;
    let required = depth;
    while (required < steps.length - 1 && steps[required]?.optional === true) required += 1;
    const behind = order === 'strict' ? events.slice(place + 1, place + 2) : events;
    const isBarred =
      depth < steps.length &&
      behind.some(
        (event) =>
          event.at > attempt.at &&
          event.at - attempt.start <= windowMs &&
          barsBetween(funnel, event, depth, required),
      );
    if (!isBarred) return { depth, times: attempt.times };
  }
  return null;
}

/** Counts at each event the steps that were done within the window that ends with it. */
export function walkInAnyOrder(
  funnel: PlainFunnel,
  events: readonly PlainEvent[],
  isStep: StepTest,
): PlainReach | null {
  const { windowMs, steps, exclusions } = funnel;
  const isExcluded = (event: PlainEvent): boolean => exclusions.some((one) => isOf(one, event));
  let best: (PlainReach & { readonly counts: boolean }) | null = null;
  events.forEach((event, place) => {
    const isAny = steps.some((_, step) => isStep(step, event));
    if (!isAny) return;
    const times = stepTimes(funnel, events.slice(0, place + 1).toReversed(), isStep)
      .filter((time) => event.at - time <= windowMs)
      .sort((one, other) => one - other);
    const first = times[0] ?? event.at;
    const counts = !events.some(
      (other) =>
        isExcluded(other) &&
        ((other.at > first && other.at < event.at) ||
          (times.length < steps.length && other.at > event.at && other.at - first <= windowMs)),
    );
    if (isBetter({ depth: times.length, counts }, best)) best = { depth: times.length, times, counts };
  });
  return taken(best);
}

/** The same for a trend: attempts that begin with an event of the interval. */
export function walkFromEntrance(
  funnel: PlainFunnel,
  events: readonly PlainEvent[],
  isStep: StepTest,
  isEntrance: (event: PlainEvent) => boolean,
): PlainReach | null {
  const { windowMs, steps, exclusions } = funnel;
  const isExcluded = (event: PlainEvent): boolean => exclusions.some((one) => isOf(one, event));
  let best: (PlainReach & { readonly counts: boolean }) | null = null;
  for (const event of events) {
    if (!isEntrance(event) || !steps.some((_, step) => isStep(step, event))) continue;
    const behind = events.filter((other) => other.at >= event.at);
    const times = stepTimes(funnel, behind, isStep).filter((time) => time - event.at <= windowMs);
    const last = Math.max(event.at, ...times);
    const counts = !events.some(
      (other) =>
        isExcluded(other) &&
        other.at > event.at &&
        (times.length === steps.length ? other.at < last : other.at - event.at <= windowMs),
    );
    if (isBetter({ depth: times.length, counts }, best)) best = { depth: times.length, times, counts };
  }
  return taken(best);
}

interface Graded {
  readonly depth: number;
  readonly counts: boolean;
}

const isBetter = (one: Graded, best: Graded | null): boolean =>
  best === null || one.depth > best.depth || (one.depth === best.depth && one.counts && !best.counts);

const taken = (best: (PlainReach & { readonly counts: boolean }) | null): PlainReach | null =>
  best?.counts === true ? { depth: best.depth, times: best.times } : null;

/** When each step was done by the nearest event; steps of the same definition take one event each. */
function stepTimes({ steps }: PlainFunnel, nearestFirst: readonly PlainEvent[], isStep: StepTest): number[] {
  return steps.flatMap((step, index) => {
    const before = steps
      .slice(0, index)
      .filter((other) => other.event === step.event && other.size === step.size).length;
    const event = nearestFirst.filter((one) => isStep(index, one))[before];
    return event === undefined ? [] : [event.at];
  });
}
