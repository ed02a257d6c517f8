import { isDeepStrictEqual } from 'node:util';
import { QueryError } from '../query_errors.ts';
import type { FunnelsQuery } from './schema.ts';
import type { FunnelExclusion, FunnelStep } from './step_schema.ts';

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
export const definitionOf = (node: Definition): unknown => ({
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
