import { DateTime, type Zone } from 'luxon';
import * as z from 'zod';
import type { Expression } from '@exportd/dialect/ast';
import { buildExpression, buildSelect, buildTimeLiteral } from '@exportd/dialect/ast_builders';
import {
  type AbsoluteDate,
  invalidDateMessage,
  microsecondDigits,
  parseAbsoluteDate,
  parseRelativeDate,
  type RelativeDate,
} from '../filters/condition.ts';
import {
  daysLater,
  firstOfDay,
  localDayOf,
  localOf,
  momentBefore,
  momentOfLocal,
  startOfClockUnit,
} from '../filters/moments.ts';
import type { DialectReader } from './dialect_reader.ts';
import { QueryError } from './query_errors.ts';
import type { FiltersOverride, QueryFreshness, QueryProject } from './query_kind.ts';
import { bucketsOf, bucketUpperBound, endForInterval, type Interval, startForInterval } from './buckets.ts';

const minute = 60_000;
const day = 24 * 60 * minute;

/** The point in time of a date in a zone. @param choice which one if the local time occurs twice */
export const momentOfDate = (
  { local, hasOffset }: AbsoluteDate,
  zone: Zone,
  choice: 'first' | 'last',
): DateTime => (hasOffset ? DateTime.fromMillis(local, { zone }) : momentOfLocal(local, zone, choice));

/** Whether its unit is shorter than a day. */
const isShort = ({ unit }: RelativeDate): boolean =>
  unit === 'hour' || unit === 'minute' || unit === 'second';

/** A time range in the project's zone. */
export interface ResolvedRange {
  readonly interval: Interval;
  readonly from: DateTime;
  /** Inclusive. The last millisecond includes all of its microseconds. */
  readonly to: DateTime;
  /** The starts of all intervals of the range, in order. */
  readonly buckets: readonly DateTime[];
}

/** What relative dates are resolved against. */
export interface DateContext {
  readonly project: QueryProject;
  readonly now: Date;
  /** The time of the project's first event; null without events, or if `needsEarliest` is false. */
  readonly earliest: Date | null;
}

/** Maximum intervals of a range: more than any chart shows, and few enough to compute quickly. */
const maxBuckets = 20_000;

/** Creates a range from its bounds. @throws QueryError for too many intervals */
function rangeBetween(
  from: DateTime,
  to: DateTime,
  interval: Interval,
  { week_start_day }: QueryProject,
  attr: string,
): ResolvedRange {
  if (bucketUpperBound(from, to, interval) > maxBuckets)
    throw new QueryError(
      'invalid_input',
      `This range has more than ${maxBuckets} ${interval} intervals. Choose a longer interval or a shorter range.`,
      { attr },
    );
  return { interval, from, to, buckets: bucketsOf(from, to, interval, week_start_day) };
}

/** The date range of a query. */
export const dateRangeSchema = z.strictObject({
  date_from: z.string().nullish(),
  date_to: z.string().nullish(),
  /** Uses both bounds exactly, without rounding to whole intervals. */
  explicitDate: z.boolean().nullish(),
});
export type DateRange = z.infer<typeof dateRangeSchema>;

/** The error for a field that must be a date. */
const invalidDate = (attr: string): QueryError =>
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

/**
 * The point in time of a date, without rounding. The end of a day is the start of the next one.
 * @throws QueryError for an invalid date
 */
function momentIn(
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
    return relative?.position === 'end' ? moment.plus(1) : moment;
  throw invalidDate(attr);
}

/** A point in time as a literal of the dialect. @param digits the microseconds, as three digits or none */
export const momentLiteral = (moment: DateTime, digits = ''): Expression =>
  buildTimeLiteral(`${moment.toUTC().toFormat("yyyy-MM-dd'T'HH:mm:ss.SSS")}${digits}Z`);

/**
 * The point in time of a date as a literal of the dialect, to the microsecond.
 * @throws QueryError for an invalid date
 */
export function momentLiteralIn(...[text, context, attr]: Parameters<typeof momentIn>): Expression {
  const absolute = parseAbsoluteDate(text);
  return momentLiteral(momentIn(text, context, attr), absolute === null ? '' : microsecondDigits(absolute));
}

/** The bounds of the placeholder `{filters}`; null where it has none. */
interface FilterBounds {
  readonly from: Expression | null;
  readonly to: { readonly moment: Expression; readonly isInclusive: boolean } | null;
}

/**
 * Resolves a date range for the placeholder `{filters}`: days begin and end as in a trend, times are exact. A range that
 * begins with a day ends with today.
 * @throws QueryError for an invalid date
 */
export function filterBounds(
  range: DateRange | null | undefined,
  context: Pick<DateContext, 'project' | 'now'>,
  attr: string,
): FilterBounds {
  const { date_from, date_to, explicitDate } = range ?? {};
  const isInDays = (text: string): boolean => {
    const relative = parseRelativeDate(text);
    const isDay = parseAbsoluteDate(text)?.isDay ?? (relative !== null && !isShort(relative));
    return isDay && explicitDate !== true;
  };
  const first = date_from === 'all' ? null : (date_from ?? null);
  const startsWithDay = first !== null && isInDays(first);
  const from = (text: string): Expression =>
    startsWithDay
      ? momentLiteral(fromOf(range, 'day', { ...context, earliest: null }, `${attr}__date_from`))
      : momentLiteralIn(text, context, `${attr}__date_from`);
  const endsWithDay = date_to ? isInDays(date_to) : startsWithDay;
  const end = (): DateTime => toOf(range, 'day', context, `${attr}__date_to`);
  return {
    from: first ? from(first) : null,
    to: endsWithDay
      ? { moment: momentLiteral(end(), '999'), isInclusive: true }
      : date_to
        ? { moment: momentLiteralIn(date_to, context, `${attr}__date_to`), isInclusive: false }
        : null,
  };
}

/**
 * The dashboard's date range if it has one, else the query's own.
 * @throws QueryError with the path of an invalid date
 */
export function withOverriddenDates<Own extends DateRange | null | undefined>(
  own: Own,
  { date_from, date_to }: Pick<FiltersOverride, 'date_from' | 'date_to'>,
): Own | DateRange {
  if (!date_from && !date_to) return own;
  return {
    date_from: date_from ? checkedDate(date_from, 'date_from') : null,
    date_to: date_to ? checkedDate(date_to, 'date_to') : null,
  };
}

/** Validates a date of a dashboard's filters and returns it unchanged. @throws QueryError for an invalid date */
export function checkedDate(text: string, field: 'date_from' | 'date_to'): string {
  const isAll = text === 'all' && field === 'date_from';
  if (isAll || parseAbsoluteDate(text) !== null || parseRelativeDate(text) !== null) return text;
  throw invalidDate(`filters_override__${field}`);
}
