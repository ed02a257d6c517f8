import fc from 'fast-check';
import type { ProjectAction } from '../../../src/queries/actions.ts';
import type { ReferenceEvent, ReferenceFunnel } from './reference_events.ts';

/** Few names, sizes and times, so that many events match several steps or happen at the same time. */
const names = ['a', 'b', 'c', 'x'] as const;
const hour = 3_600_000;
export const firstTime = Date.UTC(2026, 9, 24, 22);

const eventArb: fc.Arbitrary<Omit<ReferenceEvent, 'uuid'>> = fc.record({
  actor: fc.integer({ min: 1, max: 4 }).map((number) => `00000000-0000-0000-0000-00000000000${number}`),
  at: fc.integer({ min: 0, max: 14 }).map((number) => firstTime + (number * hour) / 2),
  event: fc.constantFrom(...names, 'a', 'b'),
  size: fc.constantFrom('s', 'l'),
  plan: fc.constantFrom('free', 'pro', '', null),
  region: fc.constantFrom('eu', 'us', null),
});

/** Events of a few actors. */
export const eventsArb: fc.Arbitrary<readonly ReferenceEvent[]> = fc
  .array(eventArb, { minLength: 4, maxLength: 45 })
  .chain((events) =>
    fc
      .shuffledSubarray(
        events.map((_, index) => index),
        { minLength: events.length },
      )
      .map((order) =>
        events.map((event, index) => ({
          ...event,
          uuid: `10000000-0000-0000-0000-${String(order[index]).padStart(12, '0')}`,
        })),
      ),
  );

const definitionArb = fc.oneof(
  { weight: 5, arbitrary: fc.record({ event: fc.constantFrom('a', 'b', 'c'), size: fc.constant(null) }) },
  { weight: 2, arbitrary: fc.record({ event: fc.constantFrom('a', 'b'), size: fc.constantFrom('s', 'l') }) },
  { weight: 1, arbitrary: fc.constant({ event: null, size: null }) },
);

/** A funnel and the options of its query. */
export interface RandomFunnel {
  readonly funnel: ReferenceFunnel;
  readonly viz: 'steps' | 'time_to_convert' | 'trends';
  readonly from: number;
  readonly to: number;
  readonly binCount: number | null;
  /** Whether breakdowns read the events, or their groups with the same properties. */
  readonly breakdownType: 'event' | 'group';
}

export const funnelArb: fc.Arbitrary<RandomFunnel> = fc
  .record({
    steps: fc.array(fc.record({ definition: definitionArb, optional: fc.boolean() }), {
      minLength: 2,
      maxLength: 4,
    }),
    order: fc.constantFrom('ordered' as const, 'ordered' as const, 'strict' as const, 'unordered' as const),
    viz: fc.constantFrom('steps' as const, 'steps' as const, 'time_to_convert' as const, 'trends' as const),
    windowMs: fc.integer({ min: 1, max: 12 }).map((number) => (number * hour) / 2),
    hasOptional: fc.boolean(),
    exclusions: fc.array(
      fc.record({ from: fc.nat(3), to: fc.nat(3), size: fc.constantFrom('s', 'l', null) }),
      { maxLength: 2 },
    ),
    hasExclusions: fc.integer({ min: 0, max: 3 }).map((number) => number === 0),
    breakdowns: fc.constantFrom([], [], ['plan' as const], ['plan' as const, 'region' as const]),
    attribution: fc.constantFrom(
      'first_touch' as const,
      'last_touch' as const,
      'all_events' as const,
      'step' as const,
    ),
    attributed: fc.nat(3),
    limit: fc.constantFrom(25, 1, 2),
    from: fc.nat(2),
    to: fc.nat(3),
    binCount: fc.constantFrom(null, 1, 3, 7),
    breakdownType: fc.constantFrom('event' as const, 'group' as const),
  })
  .map((arbitrary) => {
    const { order, viz, windowMs, breakdowns, limit, binCount, breakdownType } = arbitrary;
    const last = arbitrary.steps.length - 1;
    const hasOptional = arbitrary.hasOptional && viz === 'steps' && order !== 'unordered';
    const steps = arbitrary.steps.map(({ definition, optional }, index) => ({
      ...definition,
      optional: hasOptional && optional && index > 0 && isNotTheNext(arbitrary.steps, index),
    }));
    const from = Math.min(arbitrary.from, last - 1);
    const exclusions = (arbitrary.hasExclusions ? arbitrary.exclusions : []).map((one) => {
      const first = order === 'unordered' ? 0 : Math.min(one.from, last - 1);
      const until = order === 'unordered' ? last : Math.max(first + 1, Math.min(one.to, last));
      return { event: 'x', size: one.size, from: first, to: until };
    });
    const attribution =
      arbitrary.attribution === 'step'
        ? { step: order === 'unordered' ? 0 : Math.min(arbitrary.attributed, last) }
        : arbitrary.attribution;
    const funnel: ReferenceFunnel = { steps, order, windowMs, exclusions, breakdowns, attribution, limit };
    const to = Math.max(from + 1, Math.min(arbitrary.to, last));
    return { funnel, viz, from, to, binCount, breakdownType };
  });

/** An optional step must not equal the next one. */
const isNotTheNext = (
  steps: readonly { readonly definition: { event: string | null; size: string | null } }[],
  index: number,
): boolean => {
  const [own, next] = [steps[index]?.definition, steps[index + 1]?.definition];
  return next === undefined || own?.event !== next.event || (next.size !== null && own.size !== next.size);
};

const nodeOf = ({ event, size }: { event: string | null; size: string | null }): object => ({
  kind: 'EventsNode',
  event,
  ...(size !== null && { properties: [{ type: 'event', key: 'size', value: size, operator: 'exact' }] }),
});

/** The same nodes as actions: equal nodes are one action. */
export function withActions(): {
  readonly nodeOf: typeof nodeOf;
  readonly actions: readonly ProjectAction[];
} {
  const actions: ProjectAction[] = [];
  return {
    actions,
    nodeOf: ({ event, size }) => {
      const name = JSON.stringify([event, size]);
      const known = actions.find((action) => action.name === name);
      const filter = { type: 'event', key: 'size', value: size, operator: 'exact' } as const;
      const step = { event, properties: size === null ? [] : [filter] };
      const action = known ?? { id: actions.length + 1, name, steps: [step] };
      if (known === undefined) actions.push(action);
      return { kind: 'ActionsNode', id: action.id };
    },
  };
}

/** The query for a funnel by hour, over the first hours of a day when clocks are set back. */
export function queryOf(
  { funnel, viz, from, to, binCount, breakdownType }: RandomFunnel,
  written = nodeOf,
): object {
  const { steps, order, windowMs, exclusions, breakdowns, attribution, limit } = funnel;
  return {
    kind: 'FunnelsQuery',
    series: steps.map((step) => ({ ...written(step), optionalInFunnel: step.optional })),
    interval: 'hour',
    dateRange: { date_from: '2026-10-25', date_to: '2026-10-25T07:59:59' },
    breakdownFilter:
      breakdowns.length === 0
        ? null
        : {
            breakdown: breakdowns.length === 1 ? breakdowns[0] : breakdowns,
            breakdown_type: breakdownType,
            breakdown_group_type_index: 2,
            breakdown_limit: limit,
          },
    funnelsFilter: {
      funnelVizType: viz,
      funnelOrderType: order,
      funnelWindowInterval: windowMs / 60_000,
      funnelWindowIntervalUnit: 'minute',
      ...(viz !== 'steps' && { funnelFromStep: from, funnelToStep: to }),
      exclusions: exclusions.map((one) => ({
        ...written(one),
        funnelFromStep: one.from,
        funnelToStep: one.to,
      })),
      breakdownAttributionType: typeof attribution === 'object' ? 'step' : attribution,
      breakdownAttributionValue: typeof attribution === 'object' ? attribution.step : null,
      binCount,
    },
  };
}
