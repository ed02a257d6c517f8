import { DateTime } from 'luxon';
import type { Expression } from '../../dialect/ast.ts';
import { expressionOf, joined, timeLiteral } from '../../dialect/build.ts';
import { momentOfDate, parseAbsoluteDate } from '../dates/absolute_date.ts';
import { momentBefore, parseRelativeDate } from '../dates/relative_date.ts';
import { QueryInvalid } from '../query_errors.ts';
import type { QueryContext, QueryFreshness, QueryProject } from '../query_kind.ts';
import type { EventsQuery } from './schema.ts';

/** How far back a query goes that does not say it. */
const usualAfter = '-24h';
/** Clocks of clients run a little ahead. */
const aheadMs = 5000;

/** That an event lies between `after` and `before`, which are no part of it. @throws QueryInvalid */
export function timeCondition(
  { after, before }: Pick<EventsQuery, 'after' | 'before'>,
  context: Pick<QueryContext, 'project' | 'now'>,
): Expression | null {
  const lower = after ?? usualAfter;
  const upper = before
    ? momentOf(before, context, 'query__before')
    : DateTime.fromJSDate(context.now, { zone: 'utc' }).plus(aheadMs);
  return joined('and', [
    lower === 'all'
      ? null
      : expressionOf('events.timestamp > {moment}', {
          moment: literalOf(momentOf(lower, context, 'query__after')),
        }),
    expressionOf('events.timestamp < {moment}', { moment: literalOf(upper) }),
  ]);
}

const literalOf = (moment: DateTime): Expression =>
  timeLiteral(moment.toUTC().toFormat("yyyy-MM-dd'T'HH:mm:ss.SSS'Z'"));

function momentOf(
  text: string,
  { project, now }: { readonly project: QueryProject; readonly now: Date },
  attr: string,
): DateTime {
  const present = DateTime.fromJSDate(now, { zone: project.timezone });
  const absolute = parseAbsoluteDate(text);
  if (absolute !== null) return momentOfDate(absolute, present.zone, 'first');
  const relative = parseRelativeDate(text);
  const moment = relative && momentBefore(present, relative, project);
  if (moment?.isValid === true && moment.year >= 1000)
    // The end of a unit is where the next one begins, of which nothing is part.
    return relative?.position === 'end' ? moment.plus(1) : moment;
  throw new QueryInvalid(
    'invalid_input',
    'This is not a date: write one of ISO 8601, such as 2026-11-21, or a relative one, such as -7d.',
    { attr },
  );
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
