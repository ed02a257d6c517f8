import { DateTime, IANAZone } from 'luxon';
import { instantOfLocalHour } from './local_hour.ts';

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
  | { readonly name: 'day' }
  | { readonly name: 'week' }
  | { readonly name: 'month' };

const minuteMs = 60_000;

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
  ...['UTC', 'UCT', 'GMT', 'CET', 'EET', 'MET', 'WET'],
  ...['EST', 'MST', 'HST', 'PRC', 'ROC', 'ROK'],
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
  switch (unit.name) {
    case 'minutes':
      return unit.minutes * minuteMs;
    case 'day':
      return 24 * 60 * minuteMs;
    case 'week':
      return 7 * 24 * 60 * minuteMs;
    case 'month':
      return 30 * 24 * 60 * minuteMs;
  }
}

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
export function revisionAt(
  revisions: readonly ScheduleRevision[],
  instant: Date,
): { readonly revision: ScheduleRevision; readonly until: Date | null } {
  const index = revisionIndexAt(revisions, instant);
  const effectiveFrom = revisions[index + 1]?.effective_from;
  return {
    revision: revisionByIndex(revisions, index),
    until: effectiveFrom ? new Date(effectiveFrom) : null,
  };
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

function revisionIndexAt(revisions: readonly ScheduleRevision[], instant: Date): number {
  const later = revisions.findIndex(
    (revision, index) =>
      index > 0 && revision.effective_from !== null && new Date(revision.effective_from) > instant,
  );
  return later === -1 ? revisions.length - 1 : later - 1;
}

function revisionByIndex(revisions: readonly ScheduleRevision[], index: number): ScheduleRevision {
  const revision = revisions[index];
  if (!revision) throw new RangeError('A schedule needs at least one revision.');
  return revision;
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
  return instantOfLocalHour({ year, month, day: dayOfMonth, hour: offset_hour }, timezone);
}

function unreachable(definition: ScheduleDefinition, instant: Date): never {
  throw new RangeError(
    `No ${definition.interval} in ${definition.timezone} contains ${instant.toISOString()}.`,
  );
}
