import { DateTime, IANAZone } from 'luxon';
import type { Node } from '../../ast.ts';
import type { Statement } from '../../resolve/statement.ts';
import { rawSql, sql, type Sql } from '../../sql.ts';
import { isTimeZone, type TimeZone } from '../../types.ts';
import { computeSqlOnce } from '../compiler.ts';

const minuteMs = 60_000;
const dayMs = 86_400_000;
const lastProbe = Date.UTC(2040, 0);
/** Clock changes have been further apart since 1970. */
const probeMs = 15 * dayMs;
const knownZones = new Map<string, boolean>();

/**
 * Whether a clock change from 1970 to 2040 repeats a midnight of the zone, as in Atlantic/Azores each autumn. The first
 * call for a zone takes some 15 ms.
 */
function repeatsMidnight({ name, isUtc }: TimeZone): boolean {
  const known = isUtc ? false : knownZones.get(name);
  if (known !== undefined) return known;
  const found = findRepeatedMidnight(IANAZone.create(name));
  knownZones.set(name, found);
  return found;
}

function findRepeatedMidnight(zone: IANAZone): boolean {
  let before = zone.offset(0);
  for (let probe = probeMs; probe < lastProbe; probe += probeMs) {
    const after = zone.offset(probe);
    if (after < before) {
      const change = changeBetween(zone, probe - probeMs, probe, before);
      const [first, last] = [change + after * minuteMs, change + before * minuteMs];
      if (Math.ceil(first / dayMs) * dayMs < last) return true;
    }
    before = after;
  }
  return false;
}

/** The minute at which the offset changes, between a time with the offset and one with another. */
function changeBetween(zone: IANAZone, from: number, to: number, offset: number): number {
  let [earlier, later] = [from, to];
  while (later - earlier > minuteMs) {
    const middle = earlier + Math.floor((later - earlier) / 2 / minuteMs) * minuteMs;
    if (zone.offset(middle) === offset) earlier = middle;
    else later = middle;
  }
  return later;
}

/** Longer fragments are computed once, in a subquery. PostgreSQL plans better with constants outside of subqueries. */
const maxRepeatedTime = 200;

/**
 * The instant of a local time. Of a time that a clock change repeats, the first occurrence; PostgreSQL takes the second. A
 * time that a clock change skips is moved forward by the length of the gap.
 */
export function instantOf(local: Sql, zone: TimeZone): Sql {
  if (zone.isUtc) return second(local, zone);
  if (local.length <= maxRepeatedTime) return firstOf(local, zone);
  return computeSqlOnce([local], (at = sql``) => firstOf(at, zone));
}

const second = (local: Sql, zone: TimeZone): Sql => sql`((${local}) at time zone ${zone})`;

/** The first occurrence is the one with the offset of the day before, if it exists and is earlier. */
function firstOf(local: Sql, zone: TimeZone): Sql {
  const first = sql`((((${local}) - interval '1 day') at time zone ${zone}) + interval '24 hours')`;
  return sql`(case when ${first} < ${second(local, zone)} and (${first} at time zone ${zone}) = (${local})
    then ${first} else ${second(local, zone)} end)`;
}

/** The first instant of a date, or of a local time that is a midnight. */
export function startOfDay(day: Sql, zone: TimeZone): Sql {
  const midnight = sql`(${day})::timestamp`;
  return repeatsMidnight(zone) ? instantOf(midnight, zone) : second(midnight, zone);
}

/** The first instant of the local day of a moment. PostgreSQL's own function takes half the time. */
export const startOfDayOf = (moment: Sql, zone: TimeZone): Sql =>
  repeatsMidnight(zone)
    ? instantOf(sql`date_trunc('day', ${moment} at time zone ${zone})`, zone)
    : sql`date_trunc('day', ${moment}, ${zone})`;

/**
 * A moment plus or minus days, months or years, which keep the local time. If a clock change repeats the result, it keeps
 * the offset of the moment, so adding nothing changes nothing; if the offset is neither of the two, it is the first one.
 */
export function addCalendar(moment: Sql, operator: Sql, interval: Sql, zone: TimeZone): Sql {
  if (zone.isUtc)
    return sql`(((${moment} at time zone ${zone}) ${operator} ${interval}) at time zone ${zone})`;
  if (moment.length <= maxRepeatedTime) return addRepeated(moment, operator, interval, zone);
  return computeSqlOnce([moment], (at = sql``) => addRepeated(at, operator, interval, zone));
}

function addRepeated(moment: Sql, operator: Sql, interval: Sql, zone: TimeZone): Sql {
  const local = sql`(${moment} at time zone ${zone})`;
  const target = sql`(${local} ${operator} ${interval})`;
  const sameOffset = sql`(((${moment} at time zone 'UTC') + (${target} - ${local})) at time zone 'UTC')`;
  return sql`(case when (${sameOffset} at time zone ${zone}) = ${target}
    then ${sameOffset} else ${instantOf(target, zone)} end)`;
}

/** Checks a time zone literal. @throws DialectError if it is not a time zone */
export function timeZoneNamed(name: string, node: Node, statement: Statement): string {
  if (!isTimeZone(name))
    throw statement.error("Unknown time zone. Use an IANA name such as 'Europe/Berlin'.", node);
  return name;
}

const timePattern =
  /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2})(?::(\d{2})(\.\d{1,9})?)?)?(Z|[+-]\d{2}(?::?\d{2})?)?$/i;

/** Parses a time to UTC text that PostgreSQL reads; without an offset it is in the zone. Null if it is not a time. */
export function parseTime(text: string, timezone: string): string | null {
  const match = timePattern.exec(text.trim());
  if (match === null) return /^\d{1,12}$/.test(text.trim()) ? fromSeconds(Number(text)) : null;
  const [, day = '', clock = '00:00', seconds = '00', fraction = '', offset] = match;
  const local = `${day}T${clock}:${seconds}`;
  const time = DateTime.fromISO(`${local}${offset ?? 'Z'}`, { zone: 'utc' });
  if (!time.isValid || day.startsWith('0000')) return null;
  const moment = offset === undefined ? instantOfLocalTime(time.toMillis(), timezone) : time.toJSDate();
  const formatted = DateTime.fromJSDate(moment, { zone: 'utc' }).toFormat("yyyy-MM-dd'T'HH:mm:ss");
  return `${formatted}${fraction.slice(0, 7)}Z`;
}

const fromSeconds = (seconds: number): string => {
  const time = DateTime.fromSeconds(seconds, { zone: 'utc' });
  return time.toFormat("yyyy-MM-dd'T'HH:mm:ss'Z'");
};

/** The day of a date or time, or null. */
export function parseDate(text: string, timezone: string): string | null {
  const time = parseTime(text, timezone);
  if (time === null) return null;
  if (/^\d{4}-\d{2}-\d{2}$/.test(text.trim())) return text.trim();
  return DateTime.fromISO(time, { zone: timezone }).toISODate();
}

const maxOffsetChangeMs = 24 * 60 * 60_000;
const offsetUnitMs = 60_000;

/**
 * The instant of a local time, which is given in milliseconds as if it were UTC: of a time that a clock change repeats the
 * first one; a time that a clock change skips is moved forward by the length of the gap. Luxon's conversion starts from
 * the zone's current offset, so it resolves a repeated time differently in summer and in winter.
 */
function instantOfLocalTime(local: number, timezone: string): Date {
  const zone = IANAZone.create(timezone);
  // A zone changes its offset by at most a day, and never twice within two days.
  const before = zone.offset(local - maxOffsetChangeMs);
  const after = zone.offset(local + maxOffsetChangeMs);
  for (const offset of [Math.max(before, after), Math.min(before, after)]) {
    const instant = local - offset * offsetUnitMs;
    if (zone.offset(instant) === offset) return new Date(instant);
  }
  return new Date(local - before * offsetUnitMs);
}

const part =
  (field: string) =>
  (local: Sql): Sql =>
    sql`(extract(${rawSql(field)} from ${local}))::int8`;

const seconds =
  (factor: string) =>
  (local: Sql): Sql =>
    sql`(floor(extract(second from ${local}) * ${rawSql(factor)}))::int8`;

/** Date parts by unit, computed from a local time without time zone. */
export const dateParts: Readonly<Partial<Record<string, (local: Sql) => Sql>>> = {
  year: part('year'),
  quarter: part('quarter'),
  month: part('month'),
  week: part('week'),
  day: part('day'),
  hour: part('hour'),
  minute: part('minute'),
  second: (local) => sql`(floor(extract(second from ${local})))::int8`,
  millisecond: seconds('1000'),
  microsecond: seconds('1000000'),
};
