import { DateTime, IANAZone } from 'luxon';

/** A day that has 24 hours, in milliseconds. */
export const dayMs = 24 * 60 * 60_000;
const minuteMs = 60_000;

/**
 * Returns the instant of a local time, which is given in milliseconds as if it were UTC. If DST repeats the time, the
 * first instant; if DST skips it, the instant shifted past the gap by the time's distance from the start of the gap. The
 * result depends only on the zone's rules. Luxon's conversion starts from the zone's current offset, so it resolves a
 * repeated time differently in summer and in winter.
 */
export function instantOfLocalTime(local: number, timezone: string): Date {
  const zone = IANAZone.create(timezone);
  // A zone changes its offset by at most a day, and never twice within two days.
  const before = zone.offset(local - dayMs);
  const after = zone.offset(local + dayMs);
  const earliestFirst = [before, after].sort((one, other) => other - one);
  for (const offset of earliestFirst) {
    const instant = local - offset * minuteMs;
    if (zone.offset(instant) === offset) return new Date(instant);
  }
  return new Date(local - before * minuteMs);
}

/** A half-open range of time `[start, end)`, both ISO 8601 in UTC. */
export interface DataInterval {
  readonly start: string;
  readonly end: string;
}

/** How an export divides time into intervals. */
export interface ScheduleDefinition {
  /** `hour`, `day`, `week`, `month` or `every N minutes` with N a divisor of 60. */
  readonly interval: string;
  /** IANA name. Only day, week and month depend on it. */
  readonly timezone: string;
  /** 0–23, the local hour at which a day, week or month starts. */
  readonly offset_hour: number;
  /** Week: 0 (Sunday) to 6. Month: 0 (the first) to 27. */
  readonly offset_day: number;
}

/** A schedule definition and the boundary at which it takes effect; null for the first revision. */
export interface ScheduleRevision extends ScheduleDefinition {
  readonly effective_from: string | null;
}

type Unit =
  | { readonly name: 'minutes'; readonly minutes: number }
  | { readonly name: 'day' | 'week' | 'month' };

/** Parses the name of an interval; undefined if it is invalid. */
export function parseInterval(name: string): Unit | undefined {
  if (name === 'hour') return { name: 'minutes', minutes: 60 };
  if (name === 'day' || name === 'week' || name === 'month') return { name };
  const match = /^every ([1-9]\d?) minutes$/.exec(name);
  const minutes = Number(match?.[1]);
  return match && 60 % minutes === 0 ? { name: 'minutes', minutes } : undefined;
}

/** The three-letter names that Node.js and PostgreSQL agree on. CST, for example, has no DST in PostgreSQL. */
const shortNames = new Set([
  'UTC',
  'UCT',
  'GMT',
  'CET',
  'EET',
  'MET',
  'WET',
  'EST',
  'MST',
  'HST',
  'PRC',
  'ROC',
  'ROK',
]);

/**
 * Whether a name is an IANA time zone. Offsets such as +05:00 are rejected: Node.js and PostgreSQL read them with
 * opposite signs.
 */
export const isTimeZone = (name: string): boolean =>
  IANAZone.isValidZone(name) &&
  !/^[+-]/.test(name) &&
  (name.length !== 3 || shortNames.has(name.toUpperCase()));

/** Nominal length of an interval in milliseconds, with 30 days per month. For timeouts, never for boundaries. */
export function nominalLengthMs(name: string): number {
  const unit = unitOf(name);
  return unit.name === 'minutes'
    ? unit.minutes * minuteMs
    : { day: 1, week: 7, month: 30 }[unit.name] * dayMs;
}

/** When intervals of a day or longer start that start at a date, such as `2026-11-01`. */
export const startOfDate = (
  date: string,
  { timezone, offset_hour }: Pick<ScheduleDefinition, 'timezone' | 'offset_hour'>,
): Date => instantOfLocalTime(Date.parse(`${date}T00:00:00Z`) + offset_hour * 60 * minuteMs, timezone);

/** The definition's last boundary at or before the instant. */
export function previousBoundary(definition: ScheduleDefinition, instant: Date): Date {
  const unit = unitOf(definition.interval);
  if (unit.name === 'minutes') {
    const length = unit.minutes * minuteMs;
    return new Date(Math.floor(instant.getTime() / length) * length);
  }
  // DST can shift a skipped hour or day forward, at worst past the instant and onto the next point.
  for (const by of [0, -1, -2]) {
    const point = gridPoint(definition, unit, instant, by);
    if (point <= instant) return point;
  }
  return unreachable(definition, instant);
}

/** The definition's first boundary after the instant. */
export function nextBoundary(definition: ScheduleDefinition, instant: Date): Date {
  const unit = unitOf(definition.interval);
  if (unit.name === 'minutes')
    return new Date(previousBoundary(definition, instant).getTime() + unit.minutes * minuteMs);
  for (const by of [-1, 0, 1]) {
    const point = gridPoint(definition, unit, instant, by);
    if (point > instant) return point;
  }
  return unreachable(definition, instant);
}

/**
 * The interval that starts at a boundary. If a revision took effect between two of its own boundaries, this is the
 * bridging interval up to the next one.
 */
export function intervalFrom(revisions: readonly ScheduleRevision[], boundary: Date): DataInterval {
  const { revision, until } = revisionAt(revisions, boundary);
  const end = nextBoundary(revision, boundary);
  const capped = until !== null && until < end ? until : end;
  return { start: boundary.toISOString(), end: capped.toISOString() };
}

/** The revision in force at an instant, and when the next one takes effect; null if there is none. */
function revisionAt(
  revisions: readonly ScheduleRevision[],
  instant: Date,
): { readonly revision: ScheduleRevision; readonly until: Date | null } {
  const later = revisions.findIndex(
    ({ effective_from }, index) => index > 0 && effective_from !== null && new Date(effective_from) > instant,
  );
  const revision = revisions.at(later === -1 ? -1 : later - 1);
  if (!revision) throw new RangeError('A schedule needs at least one revision.');
  const effectiveFrom = later === -1 ? null : revisions[later]?.effective_from;
  return { revision, until: effectiveFrom ? new Date(effectiveFrom) : null };
}

/** The interval that contains an instant, by the revision in force then. */
export function intervalContaining(revisions: readonly ScheduleRevision[], instant: Date): DataInterval {
  const { revision } = revisionAt(revisions, instant);
  const grid = previousBoundary(revision, instant);
  const start =
    revision.effective_from && new Date(revision.effective_from) > grid
      ? new Date(revision.effective_from)
      : grid;
  return intervalFrom(revisions, start);
}

function unitOf(name: string): Unit {
  const unit = parseInterval(name);
  if (!unit) throw new RangeError(`Unknown interval "${name}".`);
  return unit;
}

/**
 * Returns the boundary within the calendar period of the instant's local date, shifted by `by` periods. Both directions
 * choose from these points, so they agree on the boundaries. Date arithmetic is done in UTC, where every day exists.
 */
function gridPoint(
  definition: ScheduleDefinition,
  unit: Exclude<Unit, { name: 'minutes' }>,
  instant: Date,
  by: number,
): Date {
  const { timezone, offset_day, offset_hour } = definition;
  const local = DateTime.fromJSDate(instant, { zone: timezone });
  const date = DateTime.utc(local.year, local.month, local.day);
  const day = {
    day: () => date.plus({ days: by }),
    week: () => date.minus({ days: (local.weekday - offset_day + 7) % 7 }).plus({ weeks: by }),
    month: () => date.set({ day: 1 + offset_day }).plus({ months: by }),
  }[unit.name]();
  const { year, month, day: dayOfMonth } = day;
  return instantOfLocalTime(Date.UTC(year, month - 1, dayOfMonth, offset_hour), timezone);
}

function unreachable(definition: ScheduleDefinition, instant: Date): never {
  throw new RangeError(
    `No ${definition.interval} in ${definition.timezone} contains ${instant.toISOString()}.`,
  );
}

/** Returns the bounds of the whole intervals that overlap `[start, end)` and ended by `endedBy`; undefined if none did. */
export function wholeIntervals(
  revisions: readonly ScheduleRevision[],
  range: { readonly start: Date; readonly end: Date },
  endedBy: Date,
): DataInterval | undefined {
  const { start } = intervalContaining(revisions, range.start);
  const lastEnd = intervalContaining(revisions, new Date(range.end.getTime() - 1)).end;
  return nonEmptyRange(start, earlier(lastEnd, intervalContaining(revisions, endedBy).start));
}

/**
 * Returns the part of a range of whole intervals whose intervals end neither before `start_at` nor after `end_at`;
 * undefined if no interval does.
 */
export function withinBounds(
  revisions: readonly ScheduleRevision[],
  { start, end }: DataInterval,
  bounds: { readonly start_at: string | null; readonly end_at: string | null },
): DataInterval | undefined {
  const first = bounds.start_at && firstIntervalEndingFrom(revisions, bounds.start_at).start;
  const last = bounds.end_at && intervalContaining(revisions, new Date(bounds.end_at)).start;
  return nonEmptyRange(first ? later(start, first) : start, last ? earlier(end, last) : end);
}

/** Returns the first interval that does not end before `start_at`. One that ends at it contains the millisecond before. */
export const firstIntervalEndingFrom = (
  revisions: readonly ScheduleRevision[],
  start_at: string,
): DataInterval => intervalContaining(revisions, new Date(Date.parse(start_at) - 1));

/**
 * Counts the intervals between two boundaries. Intervals of minutes are computed, not iterated: a year has half a
 * million of them.
 * @param max counting may stop above this number.
 */
export function countIntervals(
  revisions: readonly ScheduleRevision[],
  range: DataInterval,
  max = Number.POSITIVE_INFINITY,
): number {
  const end = new Date(range.end);
  let from = new Date(range.start);
  let count = 0;
  while (from < end && count <= max) {
    const { revision, until } = revisionAt(revisions, from);
    const stop = until !== null && until < end ? until : end;
    count += countBetween(revision, from, stop, max - count);
    from = stop;
  }
  return count;
}

function countBetween(definition: ScheduleDefinition, from: Date, stop: Date, max: number): number {
  const unit = parseInterval(definition.interval);
  if (unit?.name === 'minutes') {
    const length = unit.minutes * minuteMs;
    return Math.ceil(stop.getTime() / length) - Math.floor(from.getTime() / length);
  }
  // Rejects an absurdly long range without iterating over it. A month has at most 31 days.
  const maxLengthMs = (nominalLengthMs(definition.interval) * 31) / 30;
  const lowerBound = Math.floor((stop.getTime() - from.getTime()) / maxLengthMs) - 3;
  if (lowerBound > max) return lowerBound;
  let count = 0;
  for (let at = from; at < stop && count <= max; at = nextBoundary(definition, at)) count += 1;
  return count;
}

const earlier = (one: string, other: string): string => (new Date(one) < new Date(other) ? one : other);
const later = (one: string, other: string): string => (new Date(one) < new Date(other) ? other : one);

const nonEmptyRange = (start: string, end: string): DataInterval | undefined =>
  new Date(start) < new Date(end) ? { start, end } : undefined;

/**
 * Whether two exports can have an interval in common, now or in a past that a backfill can reach. They can if revisions
 * with intervals of the same length were in force at the same time, or if a bridging interval of one equals an interval
 * of the other.
 */
export const canShareIntervals = (
  revisions: readonly ScheduleRevision[],
  others: readonly ScheduleRevision[],
): boolean =>
  revisions.some((_, index) => others.some((_other, at) => revisionsOverlap(revisions, index, others, at))) ||
  shareAnyInterval(bridgesOf(revisions), others) ||
  shareAnyInterval(bridgesOf(others), revisions);

function revisionsOverlap(
  revisions: readonly ScheduleRevision[],
  index: number,
  others: readonly ScheduleRevision[],
  at: number,
): boolean {
  const [one, other] = [revisions[index], others[at]];
  if (!one || !other || nominalLengthMs(one.interval) !== nominalLengthMs(other.interval)) return false;
  const from = Math.max(startOf(one), startOf(other));
  const until = Math.min(startOf(revisions[index + 1]), startOf(others[at + 1]));
  return from < until;
}

/** When a revision takes effect, in milliseconds; infinity if there is no revision. */
const startOf = (revision: ScheduleRevision | undefined): number => {
  if (!revision) return Number.POSITIVE_INFINITY;
  return revision.effective_from === null ? Number.NEGATIVE_INFINITY : Date.parse(revision.effective_from);
};

/** The intervals on both sides of each change of revision. */
const bridgesOf = (revisions: readonly ScheduleRevision[]): DataInterval[] =>
  revisions.flatMap(({ effective_from }) => {
    if (effective_from === null) return [];
    const effectiveFrom = new Date(effective_from);
    return [
      intervalContaining(revisions, new Date(effectiveFrom.getTime() - 1)),
      intervalFrom(revisions, effectiveFrom),
    ];
  });

const shareAnyInterval = (
  intervals: readonly DataInterval[],
  revisions: readonly ScheduleRevision[],
): boolean =>
  intervals.some(({ start, end }) => {
    const other = intervalContaining(revisions, new Date(start));
    return other.start === start && other.end === end;
  });
