/** An event of the tests. */
export interface PlainEvent {
  readonly uuid: string;
  readonly actor: string;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly event: string;
  readonly size: string;
  readonly plan: string | null;
  readonly region: string | null;
}

/** Which events a step or an exclusion means; null means any. */
export interface PlainDefinition {
  readonly event: string | null;
  readonly size: string | null;
}

export interface PlainExclusion extends PlainDefinition {
  /** Steps from 0. */
  readonly from: number;
  readonly to: number;
}

/** A funnel of the tests. */
export interface PlainFunnel {
  readonly steps: readonly (PlainDefinition & { readonly optional: boolean })[];
  readonly order: 'ordered' | 'strict' | 'unordered';
  readonly windowMs: number;
  readonly exclusions: readonly PlainExclusion[];
  /** Properties that the answer is broken down by; none, one or two. */
  readonly breakdowns: readonly ('plan' | 'region')[];
  readonly attribution: 'first_touch' | 'last_touch' | 'all_events' | { readonly step: number };
  readonly limit: number;
  /** The share of all that the actors are taken for; all of them where it is missing. */
  readonly factor?: number;
}

export const isOf = (definition: PlainDefinition, event: PlainEvent): boolean =>
  (definition.event === null || definition.event === event.event) &&
  (definition.size === null || definition.size === event.size);

const rankOf = (funnel: PlainFunnel, event: PlainEvent): number => {
  const step = funnel.steps.findIndex((one) => isOf(one, event));
  return step === -1 ? funnel.steps.length : step;
};

/** The events that a funnel looks at, in the order in which it does. */
export function sortedEvents(funnel: PlainFunnel, events: readonly PlainEvent[]): readonly PlainEvent[] {
  const seen = events.filter(
    (event) =>
      funnel.order === 'strict' || [...funnel.steps, ...funnel.exclusions].some((one) => isOf(one, event)),
  );
  return seen.toSorted(
    (one, other) =>
      one.at - other.at ||
      rankOf(funnel, one) - rankOf(funnel, other) ||
      (one.uuid < other.uuid ? -1 : one.uuid > other.uuid ? 1 : 0),
  );
}
