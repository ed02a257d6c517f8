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
  daysIntoWeek,
  daysLater,
  firstOfDay,
  lastOfDay,
  localDayOf,
  localOf,
  momentBefore,
  momentOfLocal,
  startOfClockUnit,
  type WeekStart,
} from '../filters/moments.ts';
import type { DialectReader } from './dialect_reader.ts';
import { QueryError } from './query_errors.ts';
import type { FiltersOverride, QueryFreshness, QueryProject } from './query_kind.ts';

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;

/** The point in time of a date in a zone. @param choice which one if the local time occurs twice */
export const momentOfDate = (
  { local, hasOffset }: AbsoluteDate,
  zone: Zone,
  choice: 'first' | 'last',
): DateTime => (hasOffset ? DateTime.fromMillis(local, { zone }) : momentOfLocal(local, zone, choice));

/** Whether its unit is shorter than a day. */
const isShort = ({ unit }: RelativeDate): boolean =>
  unit === 'hour' || unit === 'minute' || unit === 'second';

export type Interval = 'minute' | 'hour' | 'day' | 'week' | 'month';

/** Maximum intervals of a range: more than any chart shows, and few enough to compute quickly. */
const maxBuckets = 20_000;

const shortest: Readonly<Record<Interval, number>> = {
  minute: 60_000,
  hour: 3_600_000,
  day: 82_800_000,
  week: 600_000_000,
  month: 2_400_000_000,
};

/** An upper bound of the number of intervals between two times. */
const bucketUpperBound = (from: DateTime, to: DateTime, interval: Interval): number =>
  (to.toMillis() - from.toMillis()) / shortest[interval] + 2;

/**
 * The last millisecond of the minute or hour; of the day for longer intervals, because ranges of those end with a day.
 */
function endForInterval(moment: DateTime, interval: Interval): DateTime {
  if (interval !== 'minute' && interval !== 'hour') return lastOfDay(moment);
  return startOfClockUnit(moment, interval)
    .plus({ [interval]: 1 })
    .minus(1);
}

/**
 * The start of a range that begins within an interval. Weeks are not extended to their first day, so the first week can
 * be partial.
 */
function startForInterval(moment: DateTime, interval: Interval): DateTime {
  if (interval === 'minute' || interval === 'hour') return startOfClockUnit(moment, interval);
  if (interval !== 'month') return firstOfDay(moment);
  return momentOfLocal(localStart(moment, 'month', 'sunday'), moment.zone, 'first');
}

/** The starts of all intervals that overlap the range, as the dialect's toStartOf… functions return them. */
export function bucketsOf(
  from: DateTime,
  to: DateTime,
  interval: Interval,
  weekStart: WeekStart,
): readonly DateTime[] {
  const buckets: DateTime[] = [];
  if (from > to) return buckets;
  if (interval === 'minute' || interval === 'hour') return clockBuckets(from, to, shortest[interval]);
  const last = localOf(to);
  let local = localStart(from, interval, weekStart);
  while (local <= last) {
    buckets.push(momentOfLocal(local, from.zone, 'first'));
    local = nextLocal(local, interval);
  }
  return buckets;
}

function clockBuckets(from: DateTime, to: DateTime, length: number): readonly DateTime[] {
  const { zone } = from;
  const offsetAt = offsetsOf(zone);
  const buckets: DateTime[] = [];
  // Each start is computed from a time inside the interval, because clocks can change by less than an hour.
  for (let inside = from.toMillis(); inside <= to.toMillis();) {
    const local = inside + offsetAt(inside) * shortest.minute;
    const start = inside - (((local % length) + length) % length);
    buckets.push(DateTime.fromMillis(start, { zone }));
    inside = start + length;
  }
  return buckets;
}

/**
 * Offsets of a zone in minutes for ascending times. Lookups are slow, so one serves a whole day unless clocks change on
 * it.
 */
function offsetsOf(zone: Zone): (moment: number) => number {
  const day = 86_400_000;
  let known = { from: 0, to: 0, offset: 0 };
  return (moment) => {
    if (moment >= known.from && moment < known.to) return known.offset;
    const offset = zone.offset(moment);
    if (zone.offset(moment + day) === offset) known = { from: moment, to: moment + day, offset };
    return offset;
  };
}

function localStart(moment: DateTime, interval: 'day' | 'week' | 'month', weekStart: WeekStart): number {
  const day = localDayOf(moment);
  if (interval === 'day') return day;
  return interval === 'week'
    ? daysLater(day, -daysIntoWeek(moment, weekStart))
    : daysLater(day, 1 - moment.day);
}

function nextLocal(local: number, interval: 'day' | 'week' | 'month'): number {
  if (interval !== 'month') return daysLater(local, interval === 'day' ? 1 : 7);
  const first = new Date(local);
  return Date.UTC(first.getUTCFullYear(), first.getUTCMonth() + 1);
}

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

/** Formats an interval for `days` of a result: `2024-03-04`, or `2024-03-04 09:00:00` for hours and minutes. */
export function dayOf(bucket: DateTime, interval: Interval): string {
  const hasClock = interval === 'hour' || interval === 'minute';
  return bucket.toFormat(hasClock ? 'yyyy-MM-dd HH:mm:ss' : 'yyyy-MM-dd');
}

/**
 * Formats an interval for `labels` of a result: `4-Mar-2024`, `4-Mar 09:00`, `Mar 2024`. A week is labelled by its days
 * within the range: `3–9 Mar`.
 */
export function labelOf(bucket: DateTime, interval: Interval, range: ResolvedRange): string {
  const english = bucket.setLocale('en-US');
  switch (interval) {
    case 'minute':
    case 'hour':
      return english.toFormat('d-MMM HH:mm');
    case 'day':
      return english.toFormat('d-MMM-yyyy');
    case 'week':
      return weekLabel(english, range);
    case 'month':
      return english.toFormat('MMM yyyy');
  }
}

function weekLabel(bucket: DateTime, { from, to }: ResolvedRange): string {
  const last = bucket.plus({ days: 6 });
  const [start, end] = [from > bucket ? from : bucket, to < last ? to : last];
  const [first, final] = [start.setLocale('en-US'), end.setLocale('en-US').toFormat('d MMM')];
  if (first.hasSame(end, 'day')) return final;
  return `${first.toFormat(first.hasSame(end, 'month') ? 'd' : 'd MMM')}–${final}`;
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
