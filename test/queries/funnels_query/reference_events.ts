/** An event of the tests. */
export interface ReferenceEvent {
  readonly uuid: string;
  readonly actor: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly event: string;
  readonly size: string;
  readonly plan: string | null;
  readonly region: string | null;
}

/** The events of a step or an exclusion; null means any. */
interface ReferenceDefinition {
  readonly event: string | null;
  readonly size: string | null;
}

interface ReferenceExclusion extends ReferenceDefinition {
  /** Steps, counted from 0. */
  readonly from: number;
  readonly to: number;
}

/** A funnel of the tests. */
export interface ReferenceFunnel {
  readonly steps: readonly (ReferenceDefinition & { readonly optional: boolean })[];
  readonly order: 'ordered' | 'strict' | 'unordered';
  readonly windowMs: number;
  readonly exclusions: readonly ReferenceExclusion[];
  /** Properties that results are broken down by: none, one or two. */
  readonly breakdowns: readonly ('plan' | 'region')[];
  readonly attribution: 'first_touch' | 'last_touch' | 'all_events' | { readonly step: number };
  readonly limit: number;
  /** The share of all actors that these stand for; all by default. */
  readonly factor?: number;
}

export const isOf = (definition: ReferenceDefinition, event: ReferenceEvent): boolean =>
  (definition.event === null || definition.event === event.event) &&
  (definition.size === null || definition.size === event.size);

const rankOf = (funnel: ReferenceFunnel, event: ReferenceEvent): number => {
  const step = funnel.steps.findIndex((one) => isOf(one, event));
  return step === -1 ? funnel.steps.length : step;
};

/** The events that a funnel reads, in its order. */
export function sortedEvents(
  funnel: ReferenceFunnel,
  events: readonly ReferenceEvent[],
): readonly ReferenceEvent[] {
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
