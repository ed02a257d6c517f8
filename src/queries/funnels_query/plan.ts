import { isDeepStrictEqual } from 'node:util';
import { type Breakdown, breakdownsOf } from '../breakdowns.ts';
import { QueryError } from '../query_errors.ts';
import type { QueryProject } from '../query_kind.ts';
import type { FunnelExclusion, FunnelsQuery, FunnelStep } from './schema.ts';

const filterPath = 'query__funnelsFilter';

const invalid = (message: string, attr: string): QueryError =>
  new QueryError('invalid_input', message, { attr });

/** Validates fields of a funnel against each other, which the schema cannot do. @throws QueryError */
export function checkFunnel(query: FunnelsQuery): void {
  if (query.aggregation_group_type_index !== null && query.funnelsFilter.funnelAggregateByHogQL !== null)
    throw invalid(
      'Use either aggregation_group_type_index or funnelAggregateByHogQL, not both.',
      'query__aggregation_group_type_index',
    );
  checkStepRange(query);
  query.funnelsFilter.exclusions.forEach((exclusion, index) =>
    checkExclusion(query, exclusion, `${filterPath}__exclusions__${index}`),
  );
  checkOptionalSteps(query);
  checkAttribution(query);
}

function checkStepRange({ series, funnelsFilter: { funnelFromStep, funnelToStep } }: FunnelsQuery): void {
  const last = series.length - 1;
  const from = funnelFromStep ?? 0;
  if (from < 0 || from > last - 1)
    throw invalid(
      `funnelFromStep is out of bounds. It must be between 0 and ${last - 1}.`,
      `${filterPath}__funnelFromStep`,
    );
  if (funnelToStep === null) return;
  const attr = `${filterPath}__funnelToStep`;
  if (funnelToStep < 1 || funnelToStep > last)
    throw invalid(`funnelToStep is out of bounds. It must be between 1 and ${last}.`, attr);
  if (from >= funnelToStep)
    throw invalid('Funnel step range is invalid. funnelToStep should be greater than funnelFromStep.', attr);
}

function checkExclusion(
  { series, funnelsFilter }: FunnelsQuery,
  exclusion: FunnelExclusion,
  attr: string,
): void {
  const { funnelFromStep, funnelToStep } = exclusion;
  const last = series.length - 1;
  if (funnelsFilter.funnelOrderType === 'unordered' && (funnelFromStep !== 0 || funnelToStep !== last))
    throw invalid('Partial Exclusions not allowed in unordered funnels', attr);
  const outOfRange = (why: string): QueryError => invalid(`Exclusion event range is invalid. ${why}`, attr);
  if (funnelFromStep >= funnelToStep) throw outOfRange('End of range should be greater than start.');
  if (funnelFromStep >= last) throw outOfRange('Start of range is greater than number of steps.');
  if (funnelToStep > last) throw outOfRange('End of range is greater than number of steps.');
  const inside = series.slice(funnelFromStep, funnelToStep + 1);
  if (inside.some((step) => isSubset(step, exclusion)))
    throw invalid("Exclusion steps cannot contain an event that's part of funnel steps.", attr);
}

function checkOptionalSteps({ series, funnelsFilter }: FunnelsQuery): void {
  const first = series.findIndex((step) => step.optionalInFunnel);
  if (first === -1) return;
  const attr = `query__series__${first}__optionalInFunnel`;
  const { funnelVizType, funnelOrderType } = funnelsFilter;
  if (funnelVizType !== 'steps' || funnelOrderType === 'unordered')
    throw invalid(
      'Optional funnel steps are only supported in funnels with step order Sequential or Strict and the graph type "Conversion Steps".',
      attr,
    );
  if (first === 0) throw invalid('The first step of a funnel cannot be optional.', attr);
  series.forEach((step, index) => {
    const next = series[index + 1];
    if (step.optionalInFunnel && next && !next.optionalInFunnel && isSubset(step, next))
      throw invalid(
        'An optional step cannot be the same as the following required step.',
        `query__series__${index}__optionalInFunnel`,
      );
  });
}

function checkAttribution({ series, breakdownFilter, funnelsFilter }: FunnelsQuery): void {
  const { breakdownAttributionType, breakdownAttributionValue, funnelOrderType } = funnelsFilter;
  if (!breakdownFilter || breakdownAttributionType !== 'step') return;
  const attr = `${filterPath}__breakdownAttributionValue`;
  const step = breakdownAttributionValue ?? 0;
  if (step < 0 || step >= series.length)
    throw invalid(`breakdownAttributionValue must be between 0 and ${series.length - 1}.`, attr);
  if (funnelOrderType === 'unordered' && step !== 0)
    throw invalid('Only the first step can be used for breakdown attribution in unordered funnels', attr);
}

/** A node that selects events. */
type Definition = FunnelStep | FunnelExclusion;

/** The fields that select the events of a node, to compare steps. */
const definitionOf = (node: Definition): unknown => ({
  of: node.kind === 'EventsNode' ? (node.event ?? null) : node.id,
  kind: node.kind,
  properties: orNull(node.properties),
  fixedProperties: orNull(node.fixedProperties),
});

const orNull = (filters: Definition['properties']): unknown =>
  filters === null || filters === undefined || (Array.isArray(filters) && filters.length === 0)
    ? null
    : filters;

/** Whether every event of `one` is provably an event of `other`: same event, same filters and possibly more. */
function isSubset(one: Definition, other: Definition): boolean {
  if (isDeepStrictEqual(definitionOf(one), definitionOf(other))) return true;
  const isSame =
    one.kind === 'EventsNode' && other.kind === 'EventsNode' && (one.event ?? null) === (other.event ?? null);
  return (
    isSame &&
    hasAllFilters(one.properties, other.properties) &&
    hasAllFilters(one.fixedProperties, other.fixedProperties)
  );
}

function hasAllFilters(more: Definition['properties'], fewer: Definition['properties']): boolean {
  if (orNull(fewer) === null) return true;
  if (!Array.isArray(fewer) || !Array.isArray(more)) return isDeepStrictEqual(more, fewer);
  const list: readonly unknown[] = more;
  return fewer.every((required) => list.some((filter) => isDeepStrictEqual(filter, required)));
}

/** What a funnel depends on besides its query. */
export interface FunnelContext {
  readonly project: QueryProject;
  readonly now: Date;
  /** The time of the project's first event; required if the range starts with it. */
  readonly earliest: Date | null;
}

/** Which event's value a breakdown uses. Steps are counted from 1. */
type Attribution = 'first_touch' | 'last_touch' | 'all_events' | { readonly step: number };

/** An exclusion and the steps before which it must not happen, counted from 1. */
export interface PlannedExclusion {
  readonly node: FunnelsQuery['funnelsFilter']['exclusions'][number];
  readonly before: readonly number[];
  readonly attr: string;
}

/** A funnel, prepared for statements. Steps are counted from 1. */
export interface FunnelPlan {
  readonly query: FunnelsQuery;
  /** The id of the cohort whose persons' events are read; null for those of everyone. */
  readonly cohort: number | null;
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

/** Plans a validated funnel, of everyone or of a cohort. */
export function planFunnel(query: FunnelsQuery, cohort: number | null = null): FunnelPlan {
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
    cohort,
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
    walksByEntry:
      splitsByEntry &&
      (filter.funnelOrderType === 'strict' || (filter.funnelOrderType === 'ordered' && guarded.length > 0)),
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
    typeof one.property === 'object'
      ? one.property.map((property, index) => ({ ...one, property, attr: `${one.attr}__${index}` }))
      : [one],
  );
}

function attributionOf({ funnelsFilter }: FunnelsQuery): Attribution {
  const { breakdownAttributionType: type, breakdownAttributionValue: step } = funnelsFilter;
  return type === 'step' ? { step: (step ?? 0) + 1 } : type;
}

/** Stands for all values beyond the limit. */
export const otherName = 'Other';
const defaultLimit = 25;

/** How many values have a separate list of steps. */
export const valueLimit = ({ query }: FunnelPlan): number =>
  query.breakdownFilter?.breakdown_limit ?? defaultLimit;

/** Whether values are formatted as lists: those of properties, and of several breakdowns. */
const isListed = ({ breakdowns }: FunnelPlan): boolean =>
  breakdowns.length > 1 || breakdowns.some(({ type }) => type === 'event' || type === 'person');

/** Formats a value of the column `_value` for results; null stands for all others. */
export function formatValue(plan: FunnelPlan, value: string | null): string | readonly string[] {
  if (value === null) return isListed(plan) ? [otherName] : otherName;
  if (plan.breakdowns.length > 1)
    return value === '' ? plan.breakdowns.map(() => '') : (JSON.parse(value) as readonly string[]);
  return isListed(plan) ? [value] : value;
}

/** The value of the column `_value` for a value in a request. */
export function storedValue(plan: FunnelPlan, value: string | number | readonly (string | number)[]): string {
  const values = typeof value === 'object' ? value.map(String) : [String(value)];
  if (plan.breakdowns.length <= 1) return values[0] ?? '';
  return values.every((one) => one === '') ? '' : JSON.stringify(values);
}
