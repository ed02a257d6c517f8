import { isDeepStrictEqual } from 'node:util';
import { breakdownsOf, type Breakdown } from '../breakdowns/schema.ts';
import { definitionOf } from './check_funnel.ts';
import type { FunnelsQuery } from './schema.ts';
import type { FunnelStep } from './step_schema.ts';

/** Which event's value a breakdown uses. Steps are counted from 1. */
export type Attribution = 'first_touch' | 'last_touch' | 'all_events' | { readonly step: number };

/** An exclusion and the steps before which it must not happen, counted from 1. */
export interface PlannedExclusion {
  readonly node: FunnelsQuery['funnelsFilter']['exclusions'][number];
  readonly before: readonly number[];
  readonly attr: string;
}

/** A funnel, prepared for statements. Steps are counted from 1. */
export interface FunnelPlan {
  readonly query: FunnelsQuery;
  readonly order: 'ordered' | 'strict' | 'unordered';
  /** How many steps are walked, without those that a trend does not need. */
  readonly length: number;
  readonly windowSeconds: number;
  /** The distinct definitions of the steps. */
  readonly definitions: readonly { readonly node: FunnelStep; readonly attr: string }[];
  /** The index of each step's definition. */
  readonly definitionOfStep: readonly number[];
  /** Whether an event can match only one definition, because all of them name different events. */
  readonly isExclusive: boolean;
  /** Whether event ids are needed to order events with equal times and steps, so that results are deterministic. */
  readonly hasIds: boolean;
  readonly optional: readonly boolean[];
  readonly exclusions: readonly PlannedExclusion[];
  /** Steps that an exclusion can precede, in order. */
  readonly guarded: readonly number[];
  readonly breakdowns: readonly Breakdown[];
  /** Null without a breakdown. */
  readonly attribution: Attribution | null;
  /** Whether results are split by the interval in which actors entered. */
  readonly splitsByEntry: boolean;
  /** Whether each of those intervals has a separate walk. */
  readonly walksByEntry: boolean;
}

const secondsOf = {
  second: 1,
  minute: 60,
  hour: 3_600,
  day: 86_400,
  week: 604_800,
  month: 2_678_400,
} as const;

/** Plans a validated funnel. */
export function planFunnel(query: FunnelsQuery): FunnelPlan {
  const { funnelsFilter: filter } = query;
  const breakdowns = breakdownsOfFunnel(query);
  const attribution = breakdowns.length === 0 ? null : attributionOf(query);
  const splitsByEntry = filter.funnelVizType === 'trends';
  const attributed = attribution !== null && typeof attribution === 'object' ? attribution.step : 0;
  const length = splitsByEntry
    ? Math.max((filter.funnelToStep ?? query.series.length - 1) + 1, attributed)
    : query.series.length;
  const steps = query.series.slice(0, length);
  const definitions: { node: FunnelStep; attr: string }[] = [];
  const definitionOfStep = steps.map((node, index) => {
    const known = definitions.findIndex((one) =>
      isDeepStrictEqual(definitionOf(one.node), definitionOf(node)),
    );
    if (known !== -1) return known;
    definitions.push({ node, attr: `query__series__${index}` });
    return definitions.length - 1;
  });
  const exclusions = filter.exclusions.map((node, index) => ({
    node,
    before: numbersBetween(node.funnelFromStep + 2, Math.min(node.funnelToStep + 1, length)),
    attr: `query__funnelsFilter__exclusions__${index}`,
  }));
  const guarded = numbersBetween(2, length).filter((step) =>
    exclusions.some(({ before }) => before.includes(step)),
  );
  const isExclusive = areMutuallyExclusive(definitions.map(({ node }) => node));
  return {
    query,
    order: filter.funnelOrderType,
    length,
    windowSeconds: filter.funnelWindowInterval * secondsOf[filter.funnelWindowIntervalUnit],
    definitions,
    definitionOfStep,
    isExclusive,
    hasIds:
      !isExclusive ||
      definitions.length < length ||
      (attribution !== null && attribution !== 'all_events') ||
      (filter.funnelOrderType === 'strict' && exclusions.length > 0),
    optional: steps.map((step) => step.optionalInFunnel),
    exclusions: exclusions.filter(({ before }) => before.length > 0),
    guarded,
    breakdowns,
    attribution,
    splitsByEntry,
    walksByEntry: splitsByEntry && filter.funnelOrderType !== 'unordered' && guarded.length > 0,
  };
}

/** Integers from the first to the last, both included. */
export const numbersBetween = (first: number, last: number): readonly number[] =>
  Array.from({ length: Math.max(0, last - first + 1) }, (_, index) => first + index);

function areMutuallyExclusive(nodes: readonly FunnelStep[]): boolean {
  if (nodes.length === 1) return true;
  const names = nodes.map((node) => (node.kind === 'EventsNode' ? (node.event ?? null) : null));
  return !names.includes(null) && new Set(names).size === names.length;
}

/** A breakdown with several properties becomes several breakdowns of its type. */
function breakdownsOfFunnel({ breakdownFilter }: FunnelsQuery): readonly Breakdown[] {
  return breakdownsOf(breakdownFilter).flatMap((one) =>
    typeof one.property === 'object' && one.type !== 'cohort'
      ? one.property.map((property, index) => ({ ...one, property, attr: `${one.attr}__${index}` }))
      : [one],
  );
}

function attributionOf({ funnelsFilter }: FunnelsQuery): Attribution {
  const { breakdownAttributionType: type, breakdownAttributionValue: step } = funnelsFilter;
  return type === 'step' ? { step: (step ?? 0) + 1 } : type;
}
