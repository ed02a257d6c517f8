import { DateTime } from 'luxon';
import type { Expression } from '../../dialect/ast.ts';
import { buildExpression } from '../../dialect/ast_builders.ts';
import { QueryError } from '../query_errors.ts';
import type { QueryProject } from '../query_kind.ts';
import { parseAbsoluteDate, parseRelativeDate } from '../../filters/dates.ts';
import { startForInterval, endForInterval, type Interval } from './intervals.ts';
import { firstOfDay, momentOfDate, startOfClockUnit } from './local_time.ts';
import { invalidDate } from './invalid_date.ts';
import { isShort, momentBefore } from './relative_date.ts';
import { rangeBetween, type DateContext, type ResolvedRange } from './resolved_range.ts';
import type { DateRange } from './schema.ts';

export type { Interval } from './intervals.ts';
export type { DateContext, ResolvedRange } from './resolved_range.ts';
export { previousRange } from './previous_range.ts';

/** Days before today at which a range starts by default. */
const defaultDays = 7;
/** Start of the range `all` in a project without events. */
const fallbackStart = '2015-01-01';

/** Whether the range starts with the project's first event. */
export const needsEarliest = (range: DateRange | null | undefined): boolean => range?.date_from === 'all';

/**
 * Resolves a requested date range to its bounds and intervals.
 * @throws QueryError for an invalid date, or too many intervals
 */
export function resolveRange(
  range: DateRange | null | undefined,
  interval: Interval,
  context: DateContext,
  attr = 'query__dateRange',
): ResolvedRange {
  const from = fromOf(range, interval, context, `${attr}__date_from`);
  const to = toOf(range, interval, context, `${attr}__date_to`);
  return rangeBetween(from, to, interval, context.project, attr);
}

function fromOf(
  range: DateRange | null | undefined,
  interval: Interval,
  { project, now, earliest }: DateContext,
  attr: string,
): DateTime {
  const text = range?.date_from;
  const present = DateTime.fromJSDate(now, { zone: project.timezone });
  if (!text) return firstOfDay(present.minus({ days: defaultDays }));
  const isExplicit = range.explicitDate === true;
  const widened = (moment: DateTime): DateTime => (isExplicit ? moment : startForInterval(moment, interval));
  if (text === 'all' && earliest !== null)
    return widened(DateTime.fromJSDate(earliest, { zone: project.timezone }));
  const absolute = parseAbsoluteDate(text === 'all' ? fallbackStart : text);
  if (absolute !== null) return widened(momentOfDate(absolute, present.zone, 'first'));
  const relative = parseRelativeDate(text);
  if (relative === null) throw invalidDate(attr);
  const moment = requireSupported(momentBefore(present, relative, project), attr);
  if (isExplicit || (interval === 'minute' && relative.position === null)) return moment;
  if (isShort(relative)) return startOfClockUnit(moment, relative.unit === 'hour' ? 'hour' : 'minute');
  const day = firstOfDay(moment);
  return interval === 'month' ? widened(day) : day;
}

function toOf(
  range: DateRange | null | undefined,
  interval: Interval,
  { project, now }: Pick<DateContext, 'project' | 'now'>,
  attr: string,
): DateTime {
  const text = range?.date_to;
  const present = DateTime.fromJSDate(now, { zone: project.timezone });
  const absolute = text ? parseAbsoluteDate(text) : null;
  const relative = text ? parseRelativeDate(text) : null;
  if (text && absolute === null && relative === null) throw invalidDate(attr);
  const moment =
    absolute !== null
      ? momentOfDate(absolute, present.zone, 'last')
      : relative !== null
        ? requireSupported(momentBefore(present, relative, project), attr)
        : present;
  const isClock = interval === 'hour' || interval === 'minute';
  return range?.explicitDate === true || (isClock && absolute !== null)
    ? moment
    : endForInterval(moment, interval);
}

function requireSupported(moment: DateTime, attr: string): DateTime {
  if (moment.isValid && moment.year >= 1000) return moment;
  throw new QueryError('invalid_input', 'This date is too far in the past.', { attr });
}

/** The end of a closed range, that is, an absolute `date_to` in the past; else null. */
export function closedEnd(
  range: DateRange | null | undefined,
  interval: Interval,
  project: QueryProject,
  now: Date,
): Date | null {
  if (!range?.date_to || parseAbsoluteDate(range.date_to) === null) return null;
  const to = toOf(range, interval, { project, now }, '').toJSDate();
  return to < now ? to : null;
}

/** The condition that an event is in a range. */
export const rangeCondition = ({ from, to }: ResolvedRange): Expression =>
  buildExpression('timestamp >= {first} and timestamp <= {last}', {
    first: { value: from.toUTC().toISO() ?? '' },
    last: { value: to.toUTC().toFormat(lastMicrosecond(to)) },
  });

const lastMicrosecond = ({ millisecond }: DateTime): string =>
  millisecond === 999 ? "yyyy-MM-dd'T'HH:mm:ss.SSS'999Z'" : "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'";
