import type { Relations } from '../../source/relations.ts';
import { resolveRange } from '../dates/date_range.ts';
import { earliestFor } from '../dates/earliest_event.ts';
import { openDialectReader } from '../dialect_reader.ts';
import { rangeFreshness } from '../dates/range_freshness.ts';
import { overriddenInsight } from '../insight_members.ts';
import type { AnswerResults, QueryKind } from '../query_kind.ts';
import type { FunnelAbout } from './about.ts';
import { checkExpressions } from './checked_expressions.ts';
import { cacheFormOf } from './cache_form.ts';
import { checkFunnel } from './check_funnel.ts';
import { funnelActorRows } from './funnel_actors.ts';
import { planFunnel, type FunnelPlan } from './plan.ts';
import { funnelsQuerySchema, type FunnelsQuery } from './schema.ts';
import { stepsAnswer, stepsSelect } from './steps_answer.ts';
import { timeToConvertAnswer, timeToConvertSelect } from './time_to_convert.ts';
import { trendsAnswer, trendsSelect } from './trends_answer.ts';

/** More than any answer has: intervals times values of a breakdown. */
const mostRows = 1_000_000;

/** How many persons get from one event to the next. */
export const funnelsQueryKind = (relations: Relations): QueryKind<FunnelsQuery> => ({
  kind: 'FunnelsQuery',
  schema: funnelsQuerySchema,
  freshness: rangeFreshness,
  variables: () => [],
  override: overriddenInsight,
  cacheForm: cacheFormOf,
  run: async (query, context) => {
    checkFunnel(query);
    const plan = planFunnel(query);
    const reader = await openDialectReader(context, relations);
    const { project, now } = context;
    checkExpressions(plan, project, reader);
    const earliest = await earliestFor(query.dateRange, reader);
    const about: FunnelAbout = { project, now, earliest };
    const form = answerForms[query.funnelsFilter.funnelVizType];
    const { statement, rows } = await reader.read(form.select(plan, funnelActorRows(plan, about)), {
      rows: { fallback: mostRows, most: mostRows },
    });
    const { from, to } = resolveRange(query.dateRange, query.interval, about);
    return {
      results: form.answer(plan, about, rows),
      dialect_query: statement.printed,
      more: { resolved_date_range: { date_from: from.toISO(), date_to: to.toISO() } },
    };
  },
});

interface AnswerForm {
  readonly select: typeof stepsSelect;
  readonly answer: (
    plan: FunnelPlan,
    about: FunnelAbout,
    rows: readonly (readonly unknown[])[],
  ) => AnswerResults;
}

const answerForms: Readonly<Record<FunnelsQuery['funnelsFilter']['funnelVizType'], AnswerForm>> = {
  steps: { select: stepsSelect, answer: (plan, _about, rows) => stepsAnswer(plan, rows) },
  time_to_convert: {
    select: timeToConvertSelect,
    answer: (plan, _about, rows) => ({ ...timeToConvertAnswer(plan, rows) }),
  },
  trends: { select: trendsSelect, answer: trendsAnswer },
};
