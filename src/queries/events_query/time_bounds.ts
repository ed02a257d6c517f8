import { DateTime } from 'luxon';
import type { Expression } from '../../dialect/ast.ts';
import { buildExpression, combineConditions } from '../../dialect/ast_builders.ts';
import { parseAbsoluteDate } from '../../filters/dates.ts';
import { momentOfDate } from '../dates/local_time.ts';
import { momentLiteral, momentLiteralIn } from '../dates/moment.ts';
import type { QueryContext, QueryFreshness, QueryProject } from '../query_kind.ts';
import type { EventsQuery } from './schema.ts';

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
