import { DateTime } from 'luxon';
import * as z from 'zod';
import type { Expression } from '@exportd/dialect/ast';
import { buildExpression, combineConditions } from '@exportd/dialect/ast_builders';
import { parseAbsoluteDate } from '../../filters/condition.ts';
import { propertyFiltersSchema } from '../../filters/schema.ts';
import { insightActorsSchema } from '../actors_query/schema.ts';
import { actionIdSchema } from '../actions.ts';
import { momentOfDate, checkedDate, momentLiteral, momentLiteralIn } from '../dates.ts';
import { ignoredFields } from '../query_fields.ts';
import { withOverride } from '../property_filters.ts';
import type { FiltersOverride, QueryContext, QueryFreshness, QueryProject } from '../query_kind.ts';

const filters = propertyFiltersSchema.nullish();
const date = z
  .string()
  .transform((text) => (text === '' ? null : text))
  .nullish();
const expressions = z.array(z.string()).max(100);

/** A query of the kind EventsQuery. */
export const eventsQuerySchema = z.strictObject({
  kind: z.literal('EventsQuery'),
  /** Expressions of the dialect, or `*`, `person`, `person_display_name`; `*` by default if the list is empty. */
  select: expressions.transform((select) => (select.length === 0 ? ['*'] : select)),
  /** Conditions; all must match. */
  where: expressions.nullish(),
  properties: filters,
  fixedProperties: filters,
  filterTestAccounts: z.boolean().nullish(),
  /** The event name. */
  event: z.string().nullish(),
  actionId: actionIdSchema.nullish(),
  personId: z.string().nullish(),
  /**
   * Exclusive time bounds, absolute or relative; `all` for no lower bound. By default the last day, or everything if
   * `source` is set.
   */
  after: date,
  before: date,
  orderBy: expressions.nullish(),
  limit: z.number().int().min(1).nullish(),
  offset: z.number().int().min(0).nullish(),
  /** Selects the events behind a point of an insight. */
  source: insightActorsSchema.nullish(),
  ...ignoredFields,
});
export type EventsQuery = z.infer<typeof eventsQuerySchema>;

/** The default lower bound. */
const defaultAfter = '-24h';
/** Allows for client clocks that are ahead. */
const maxClockSkewMs = 5000;

/** The condition that an event is between `after` and `before`, both exclusive. @throws QueryError */
export function timeCondition(
  { after, before, source }: Pick<EventsQuery, 'after' | 'before' | 'source'>,
  context: Pick<QueryContext, 'project' | 'now'>,
): Expression | null {
  const lower = after ?? (source ? 'all' : defaultAfter);
  const upper = before
    ? momentLiteralIn(before, context, 'query__before')
    : momentLiteral(DateTime.fromJSDate(context.now, { zone: 'utc' }).plus(maxClockSkewMs));
  return combineConditions('and', [
    lower === 'all'
      ? null
      : buildExpression('events.timestamp > {moment}', {
          moment: momentLiteralIn(lower, context, 'query__after'),
        }),
    buildExpression('events.timestamp < {moment}', { moment: upper }),
  ]);
}

/** A range between two absolute times is closed; one that moves with the clock changes. */
export function freshnessOf(
  { after, before }: Pick<EventsQuery, 'after' | 'before'>,
  project: QueryProject,
): QueryFreshness {
  const from = after === 'all' ? after : parseAbsoluteDate(after ?? '');
  const to = parseAbsoluteDate(before ?? '');
  if (from === null || to === null) return { interval: 'minute', date_to: null };
  const { zone } = DateTime.fromMillis(0, { zone: project.timezone });
  return { interval: 'minute', date_to: momentOfDate(to, zone, 'last').toJSDate() };
}

/**
 * A query with a dashboard's filters: its dates replace those of the query, its property filters are added.
 * @throws QueryError
 */
export const overrideEvents = (
  query: EventsQuery,
  { date_from, date_to, properties }: FiltersOverride,
): EventsQuery => ({
  ...query,
  ...(date_from ? { after: checkedDate(date_from, 'date_from') } : {}),
  ...(date_to ? { before: dayAfter(checkedDate(date_to, 'date_to')) } : {}),
  properties: withOverride(query.properties, properties),
});

/** `before` is exclusive, but the last day of a dashboard's range is included. */
function dayAfter(text: string): string {
  const day = parseAbsoluteDate(text);
  if (day?.isDay !== true) return text;
  return DateTime.fromMillis(day.local, { zone: 'utc' }).plus({ days: 1 }).toFormat('yyyy-MM-dd');
}
