import type { Relations } from '../../source/relations.ts';
import { closedEnd, needsEarliest, resolveRange } from '../dates/date_range.ts';
import { earliestEvent } from '../dates/earliest_event.ts';
import { openDialectReader } from '../dialect_reader.ts';
import { withOverride } from '../filters/override.ts';
import type { AnswerResults, QueryKind } from '../query_kind.ts';
import type { FunnelAbout } from './about.ts';
import { checkFunnel } from './check_funnel.ts';
import { presentationNames } from './filter_schema.ts';
import { funnelActorRows } from './funnel_actors.ts';
import { planFunnel, type FunnelPlan } from './plan.ts';
import { funnelsQuerySchema, type FunnelsQuery } from './schema.ts';
import { stepsAnswer, stepsSelect } from './steps_answer.ts';
import { timeToConvertAnswer, timeToConvertSelect } from './time_to_convert.ts';
import { trendsAnswer, trendsSelect } from './trends_answer.ts';

const minute = 60_000;
const week = 7 * 24 * 60 * minute;
/** More than any answer has: intervals times values of a breakdown. */
const mostRows = 1_000_000;

/** How many persons get from one event to the next. */
export const funnelsQueryKind = (relations: Relations): QueryKind<FunnelsQuery> => ({
  kind: 'FunnelsQuery',
  schema: funnelsQuerySchema,
  freshness: (query, project, now) => ({
    interval: query.interval,
    date_to: closedEnd(query.dateRange, query.interval, project, now),
    next_refresh_ms: isShort(query, { project, now, earliest: null }) ? 3 * minute : 15 * minute,
  }),
  variables: () => [],
  override: (query, { date_from, date_to, properties }) => ({
    ...query,
    ...((date_from ?? date_to ?? null) !== null && { dateRange: { date_from, date_to } }),
    properties: withOverride(query.properties, properties),
  }),
  cacheForm,
  run: async (query, context) => {
    checkFunnel(query);
    const plan = planFunnel(query);
    const reader = await openDialectReader(context, relations);
    const { project, now } = context;
    const earliest = needsEarliest(query.dateRange) ? await earliestEvent(reader) : null;
    const about: FunnelAbout = { project, now, earliest };
    const form = answerForms[query.funnelsFilter.funnelVizType];
    const { statement, rows } = await reader.read(form.select(plan, funnelActorRows(plan, about)), {
      rows: { fallback: mostRows, most: mostRows },
    });
    return { results: form.answer(plan, about, rows), dialect_query: statement.printed };
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

/** Hours, and ranges of a week at most, change so fast that clients may ask again sooner. */
function isShort(query: FunnelsQuery, about: FunnelAbout): boolean {
  if (query.interval === 'hour' || query.interval === 'minute') return true;
  if (needsEarliest(query.dateRange)) return false;
  try {
    const { from, to } = resolveRange(query.dateRange, query.interval, about);
    return to.diff(from).toMillis() <= week;
  } catch {
    return false;
  }
}

/** A query without what changes nothing of its answer. */
function cacheForm(query: FunnelsQuery): unknown {
  const {
    name: _name,
    tags: _tags,
    version: _version,
    response: _response,
    dataColorTheme: _theme,
    ...asked
  } = query;
  const filter = Object.entries(query.funnelsFilter).filter(([member]) => !presentationNames.has(member));
  return { ...asked, funnelsFilter: Object.fromEntries(filter) };
}
