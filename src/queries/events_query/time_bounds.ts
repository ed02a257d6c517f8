import { DateTime } from 'luxon';
import type { Expression } from '../../dialect/ast.ts';
import { buildExpression, combineConditions } from '../../dialect/ast_builders.ts';
import { momentOfDate, parseAbsoluteDate } from '../dates/absolute_date.ts';
import { momentIn, momentLiteral } from '../dates/moment.ts';
import type { QueryContext, QueryFreshness, QueryProject } from '../query_kind.ts';
import type { EventsQuery } from './schema.ts';

/** How far back a query goes that does not say it. */
const defaultAfter = '-24h';
/** Clocks of clients run a little ahead. */
const maxClockSkewMs = 5000;

/** That an event lies between `after` and `before`, which are no part of it. @throws QueryError */
export function timeCondition(
  { after, before, source }: Pick<EventsQuery, 'after' | 'before' | 'source'>,
  context: Pick<QueryContext, 'project' | 'now'>,
): Expression | null {
  const lower = after ?? (source ? 'all' : defaultAfter);
  const upper = before
    ? momentIn(before, context, 'query__before')
    : DateTime.fromJSDate(context.now, { zone: 'utc' }).plus(maxClockSkewMs);
  return combineConditions('and', [
    lower === 'all'
      ? null
      : buildExpression('events.timestamp > {moment}', {
          moment: momentLiteral(momentIn(lower, context, 'query__after')),
        }),
    buildExpression('events.timestamp < {moment}', { moment: momentLiteral(upper) }),
  ]);
}

/** A range between two moments of the past does not change any more; one that moves with the clock does. */
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
