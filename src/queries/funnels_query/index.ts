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
    const plan = planFunnel(query);
    const reader = await openDialectReader(context);
    const { project, now } = context;
    checkExpressions(plan, project, reader);
    const earliest = await earliestFor(query.dateRange, reader);
    const funnelContext: FunnelContext = { project, now, earliest };
    const form = resultForms[query.funnelsFilter.funnelVizType];
    const { statement, rows } = await reader.read(form.select(plan, funnelActorRows(plan, funnelContext)), {
      rows: { defaultLimit: maxRows, maxRows: maxRows },
    });
    const { from, to } = resolveRange(query.dateRange, query.interval, funnelContext);
    return {
      results: form.toResult(plan, funnelContext, rows),
      dialect_query: statement.printed,
      more: { resolved_date_range: { date_from: from.toISO(), date_to: to.toISO() } },
    };
  },
};

interface ResultForm {
  readonly select: typeof stepsSelect;
  readonly toResult: (
    plan: FunnelPlan,
    funnelContext: FunnelContext,
    rows: readonly (readonly unknown[])[],
  ) => OutputResults;
}

const resultForms: Readonly<Record<FunnelsQuery['funnelsFilter']['funnelVizType'], ResultForm>> = {
  steps: { select: stepsSelect, toResult: (plan, _about, rows) => stepsResult(plan, rows) },
  time_to_convert: {
    select: timeToConvertSelect,
    toResult: (plan, _about, rows) => ({ ...timeToConvertResult(plan, rows) }),
  },
  trends: { select: trendsSelect, toResult: trendsResult },
};
