import { DateTime } from 'luxon';
import { z } from 'zod';
import type { Expression } from '../../dialect/ast.ts';
import { buildExpression, buildSelect } from '../../dialect/ast_builders.ts';
import { invalidDateMessage, parseAbsoluteDate, parseRelativeDate } from '../../filters/dates.ts';
import type { DialectReader } from '../dialect_reader.ts';
import { QueryError } from '../query_errors.ts';
import type { QueryFreshness, QueryProject } from '../query_kind.ts';
import {
  type DateContext,
  endForInterval,
  type Interval,
  rangeBetween,
  type ResolvedRange,
  startForInterval,
} from './intervals.ts';
import {
  daysLater,
  firstOfDay,
  isShort,
  localDayOf,
  localOf,
  momentBefore,
  momentOfDate,
  momentOfLocal,
  startOfClockUnit,
} from './local_time.ts';

/** The date range of a query. */
export const dateRangeSchema = z.strictObject({
  date_from: z.string().nullish(),
  date_to: z.string().nullish(),
  /** Uses both bounds exactly, without rounding to whole intervals. */
  explicitDate: z.boolean().nullish(),
});
export type DateRange = z.infer<typeof dateRangeSchema>;

/** The error for a field that must be a date. */
export const invalidDate = (attr: string): QueryError =>
  new QueryError('invalid_input', invalidDateMessage, { attr });

const millisecondsPerDay = 86_400_000;
const compareTo = 'query__compareFilter__compare_to';

/**
 * The range that another one is compared with. By default, one of the same length directly before it, between the same
 * local times; else the range moved back by `distance`, such as `-1w`.
 * @throws QueryError for an invalid `distance`
 */
export function previousRange(
  range: DateRange | null | undefined,
  distance: string | null,
  resolved: ResolvedRange,
  { project }: DateContext,
): ResolvedRange {
  const { interval } = resolved;
  const { from, to } =
    distance === null ? directlyBefore(range, resolved) : movedBy(distance, resolved, project);
  return rangeBetween(from, to, interval, project, distance === null ? 'query__dateRange' : compareTo);
}

interface Bounds {
  readonly from: DateTime;
  readonly to: DateTime;
}

function movedBy(distance: string, { from, to }: ResolvedRange, project: DateContext['project']): Bounds {
  const relative = parseRelativeDate(distance);
  if (relative?.position !== null)
    throw new QueryError(
      'invalid_input',
      'This is not a valid time span. Use a relative date, such as -1w or -1m.',
      {
        attr: compareTo,
      },
    );
  const moved = { from: momentBefore(from, relative, project), to: momentBefore(to, relative, project) };
  if (moved.from.isValid && moved.from.year >= 1000) return moved;
  throw new QueryError('invalid_input', 'This time span is too long.', { attr: compareTo });
}

function directlyBefore(range: DateRange | null | undefined, { interval, from, to }: ResolvedRange): Bounds {
  const length = to.diff(from);
  if (range?.explicitDate === true || interval === 'minute')
    return { from: from.minus(length).minus(1), to: from.minus(1) };
  if (interval === 'hour') {
    const startTime = localDayOf(from.minus(length)) + (localOf(from) - localDayOf(from));
    const first = momentOfLocal(startTime, from.zone, 'first');
    return { from: first, to: endForInterval(first.plus(length), 'hour') };
  }
  const days = (localDayOf(to) - localDayOf(from)) / millisecondsPerDay + 1;
  const back = interval === 'day' && isWholeWeeks(range) ? days - 1 : days;
  return { from: daysBefore(from, back), to: endForInterval(daysBefore(to, back), interval) };
}

/** `-7d` up to today has eight days. Moved back by seven days, each day is compared with the same weekday. */
function isWholeWeeks(range: DateRange | null | undefined): boolean {
  if (range?.date_to) return false;
  if (!range?.date_from) return true;
  const relative = parseRelativeDate(range.date_from);
  return relative?.unit === 'day' && relative.amount > 0 && relative.amount % 7 === 0;
}

const daysBefore = (moment: DateTime, days: number): DateTime =>
  firstOfDay(momentOfLocal(daysLater(localDayOf(moment), -days), moment.zone, 'first'));

/** Days before today at which a range starts by default. */
const defaultDays = 7;
/** Start of the range `all` in a project without events. */
const fallbackStart = '2015-01-01';

/** Whether the range starts with the project's first event. */
const needsEarliest = (range: DateRange | null | undefined): boolean => range?.date_from === 'all';

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

/** The time of the project's first event, for a range that starts with it; null for other ranges, or without events. */
export async function earliestFor(
  range: DateRange | null | undefined,
  reader: DialectReader,
): Promise<Date | null> {
  if (!needsEarliest(range)) return null;
  const { rows } = await reader.read(buildSelect('select min(toNullable(timestamp)) from events'));
  const earliest = rows[0]?.[0];
  return typeof earliest === 'string' ? new Date(earliest) : null;
}

const minute = 60_000;
const day = 24 * 60 * minute;

/** The fields of an insight that decide how fast its result changes. */
interface FreshnessRange {
  readonly interval: Interval;
  readonly dateRange?: DateRange | null | undefined;
}

/** The age limits of an insight over a date range. */
export function rangeFreshness(range: FreshnessRange, project: QueryProject, now: Date): QueryFreshness {
  const { interval, dateRange } = range;
  try {
    return {
      interval,
      date_to: closedEnd(dateRange, interval, project, now),
      next_refresh_ms: nextRefreshMs(range, project, now),
    };
  } catch (error) {
    // An invalid date is reported when the query runs.
    if (!(error instanceof QueryError)) throw error;
    return { interval, date_to: null };
  }
}

/** Longer for long ranges, whose results change slowly and are expensive. */
function nextRefreshMs({ interval, dateRange }: FreshnessRange, project: QueryProject, now: Date): number {
  if (interval === 'minute') return minute;
  if (interval === 'hour') return 3 * minute;
  if (needsEarliest(dateRange)) return 15 * minute;
  const { from, to } = resolveRange(dateRange, interval, { project, now, earliest: null });
  const wholeDays = Math.floor((to.toMillis() - from.toMillis()) / day);
  return wholeDays <= 7 ? 3 * minute : 15 * minute;
}
