import { type BreakdownCohort, breakdownCohorts, checkCohorts } from '../cohorts.ts';
import { earliestFor, rangeFreshness, resolveRange } from '../dates.ts';
import { openDialectReader } from '../dialect_reader.ts';
import { overriddenInsight } from '../query_fields.ts';
import type { OutputResults, QueryKind } from '../query_kind.ts';
import { checkFunnel, type FunnelContext, type FunnelPlan, planFunnel } from './plan.ts';
import { checkExpressions } from './read_events.ts';
import { type FunnelsQuery, funnelsQuerySchema, normalizeForCache } from './schema.ts';
import { funnelActorRows } from './actors.ts';
import {
  stepsResult,
  stepsSelect,
  timeToConvertResult,
  timeToConvertSelect,
  trendsResult,
  trendsSelect,
} from './results.ts';

/** Higher than any possible result: intervals times breakdown values. */
const maxRows = 1_000_000;

/** Conversion from one event to the next. */
export const funnelsQueryKind: QueryKind<FunnelsQuery> = {
  kind: 'FunnelsQuery',
  schema: funnelsQuerySchema,
  freshness: rangeFreshness,
  variables: () => [],
  override: overriddenInsight,
  normalizeForCache: normalizeForCache,
  run: async (query, context) => {
    checkFunnel(query);
    const reader = await openDialectReader(context);
    const { project, now } = context;
    checkExpressions(planFunnel(query), project, reader);
    await checkCohorts(query, reader);
    const cohorts = await breakdownCohorts(query.breakdownFilter, reader);
    const earliest = await earliestFor(query.dateRange, reader);
    const funnelContext: FunnelContext = { project, now, earliest };
    const { funnelVizType } = query.funnelsFilter;
    const form = resultForms[funnelVizType];
    const printed: string[] = [];
    const resultsOf = async (cohort: number | null): Promise<OutputResults> => {
      const plan = planFunnel(query, cohort);
      const { statement, rows } = await reader.read(form.select(plan, funnelActorRows(plan, funnelContext)), {
        rows: { defaultLimit: maxRows, maxRows: maxRows },
      });
      printed.push(statement.printed);
      return form.toResult(plan, funnelContext, rows);
    };
    const isOfEveryone = cohorts === null || funnelVizType === 'time_to_convert';
    const results = isOfEveryone ? await resultsOf(null) : await resultsOfCohorts(cohorts, query, resultsOf);
    const { from, to } = resolveRange(query.dateRange, query.interval, funnelContext);
    return {
      results,
      dialect_query: printed.join(';\n'),
      more: { resolved_date_range: { date_from: from.toISO(), date_to: to.toISO() } },
    };
  },
};

/** The results of each cohort that anyone of entered the funnel, in the order of the query. */
async function resultsOfCohorts(
  cohorts: readonly BreakdownCohort[],
  { funnelsFilter }: FunnelsQuery,
  resultsOf: (cohort: number | null) => Promise<OutputResults>,
): Promise<OutputResults> {
  const results: unknown[] = [];
  for (const { id, name } of cohorts) {
    const own = (await resultsOf(id)) as readonly object[];
    // Clients of PostHog know everyone as 0.
    const named = own.map((one) => ({
      ...one,
      ...(funnelsFilter.funnelVizType === 'steps' && { breakdown: name }),
      breakdown_value: id ?? 0,
    }));
    if (funnelsFilter.funnelVizType === 'trends') results.push(...named);
    else if (named.length > 0) results.push(named);
  }
  return results;
}

interface ResultForm {
  readonly select: typeof stepsSelect;
  readonly toResult: (
    plan: FunnelPlan,
    funnelContext: FunnelContext,
    rows: readonly (readonly unknown[])[],
  ) => OutputResults;
}

const resultForms: Readonly<Record<FunnelsQuery['funnelsFilter']['funnelVizType'], ResultForm>> = {
  steps: { select: stepsSelect, toResult: stepsResult },
  time_to_convert: {
    select: timeToConvertSelect,
    toResult: (plan, _about, rows) => ({ ...timeToConvertResult(plan, rows) }),
  },
  trends: { select: trendsSelect, toResult: trendsResult },
};
