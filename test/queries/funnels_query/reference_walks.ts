import { isOf, type ReferenceEvent, type ReferenceFunnel } from './reference_events.ts';

/** How far an actor got: the times of the steps, null for optional steps that were skipped. */
export interface ReferenceProgress {
  readonly depth: number;
  readonly times: readonly (number | null)[];
}

/** Whether an event does a step; the only thing that walks know of steps. */
export type StepTest = (step: number, event: ReferenceEvent) => boolean;

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

/** Walks sorted events one by one and remembers the newest attempt that has reached each step. */
export function walkInOrder(
  funnel: ReferenceFunnel,
  events: readonly ReferenceEvent[],
  isStep: StepTest,
): ReferenceProgress | null {
  const { steps, windowMs, order } = funnel;
  const reached: Reached[] = [];
  let entered: (Attempt | undefined)[] = [];
  events.forEach((event, index) => {
    const next: (Attempt | undefined)[] = order === 'strict' ? [] : [...entered];
    for (let step = steps.length - 1; step >= 0; step -= 1) {
      if (!isStep(step, event)) continue;
      if (step === 0) {
        next[0] = { start: event.at, at: event.at, times: [event.at] };
        reached.push({ depth: 1, attempt: next[0], index });
        continue;
      }
      let from = step - 1;
      const isOpen = (one: Attempt | undefined): one is Attempt =>
        one !== undefined && event.at - one.start <= windowMs;
      while (!isOpen(entered[from]) && from > 0 && steps[from]?.optional === true) from -= 1;
      const source = entered[from];
      if (!isOpen(source)) continue;
      const isBarred = events.some(
        (other) =>
          other.at > source.at && other.at < event.at && hasExclusionBetween(funnel, other, from + 1, step),
      );
      if (isBarred) {
        reached.push({ depth: step + 1, attempt: null, index });
        continue;
      }
      const times = [...source.times];
      while (times.length < step) times.push(null);
      const attempt = { start: source.start, at: event.at, times: [...times, event.at] };
      next[step] = attempt;
      reached.push({ depth: step + 1, attempt, index });
    }
    entered = next;
  });
  return deepest(funnel, events, reached);
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
          event.at > attempt.at &&
          event.at - attempt.start <= windowMs &&
          hasExclusionBetween(funnel, event, depth, required),
      );
    if (!isBarred) return { depth, times: attempt.times };
  }
  return null;
}

/** Counts, at each event, the steps that were done within the window ending with it. */
export function walkInAnyOrder(
  funnel: ReferenceFunnel,
  events: readonly ReferenceEvent[],
  isStep: StepTest,
): ReferenceProgress | null {
  const { windowMs, steps, exclusions } = funnel;
  const isExcluded = (event: ReferenceEvent): boolean => exclusions.some((one) => isOf(one, event));
  let best: (ReferenceProgress & { readonly counts: boolean }) | null = null;
  events.forEach((event, index) => {
    const isAny = steps.some((_, step) => isStep(step, event));
    if (!isAny) return;
    const times = stepTimes(funnel, events.slice(0, index + 1).toReversed(), isStep)
      .filter((time) => event.at - time <= windowMs)
      .sort((one, other) => one - other);
    const first = times[0] ?? event.at;
    const counts = !events.some(
      (other) =>
        isExcluded(other) &&
        ((other.at > first && other.at < event.at) ||
          (times.length < steps.length && other.at > event.at && other.at - first <= windowMs)),
    );
    if (isDeeper({ depth: times.length, counts }, best)) best = { depth: times.length, times, counts };
  });
  return takenEvents(best);
}

/** The same for a trend: attempts that start with an event of the interval. */
export function walkFromEntry(
  funnel: ReferenceFunnel,
  events: readonly ReferenceEvent[],
  isStep: StepTest,
  isEntrance: (event: ReferenceEvent) => boolean,
): ReferenceProgress | null {
  const { windowMs, steps, exclusions } = funnel;
  const isExcluded = (event: ReferenceEvent): boolean => exclusions.some((one) => isOf(one, event));
  let best: (ReferenceProgress & { readonly counts: boolean }) | null = null;
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

/** The times of steps by their nearest events; steps of the same definition take one event each. */
function stepTimes(
  { steps }: ReferenceFunnel,
  nearestFirst: readonly ReferenceEvent[],
  isStep: StepTest,
): number[] {
  return steps.flatMap((step, index) => {
    const before = steps
      .slice(0, index)
      .filter((other) => other.event === step.event && other.size === step.size).length;
    const event = nearestFirst.filter((one) => isStep(index, one))[before];
    return event === undefined ? [] : [event.at];
  });
}
