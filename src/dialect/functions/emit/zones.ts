import { argument, type CallSite, argumentNode } from '../../compile/functions/call_site.ts';
import { timeZoneNamed } from '../../compile/time_zones.ts';
import { startOfDay } from '../../compile/local_times.ts';
import { sql, type Sql } from '../../sql.ts';
import { TimeZone } from '../../time_zone.ts';
import { timeIn, type Type, zoneOf } from '../../types.ts';

/**
 * The time zone of a call: that of an argument if present, else that of a datetime's type, else the project's.
 * @throws DialectError for an unknown zone
 */
export const zoneAt = (site: CallSite, index: number | null, time = 0): TimeZone =>
  new TimeZone(zoneNameAt(site, index, time) ?? site.statement.project.timezone);

/** The type of a datetime in the zone of `zoneAt`. */
export const datetimeTypeAt = (site: CallSite, index: number | null, nullable: boolean, time = 0): Type =>
  timeIn(zoneNameAt(site, index, time), nullable);

function zoneNameAt(site: CallSite, index: number | null, time: number): string | undefined {
  const named = index === null ? undefined : site.values[index];
  if (index !== null && named !== undefined) return zoneNamed(site, named.constant, index);
  const value = site.values[time];
  return value === undefined ? undefined : zoneOf(value.type);
}

function zoneNamed(site: CallSite, name: unknown, index: number): string {
  if (typeof name !== 'string')
    throw site.statement.error(
      "The time zone must be a string literal such as 'Europe/Berlin'.",
      argumentNode(site, index),
    );
  return timeZoneNamed(name, argumentNode(site, index), site.statement);
}

/** A date or datetime as local time of a zone. */
export function localTime(site: CallSite, index: number, zone: Sql): Sql {
  const { sql: fragment, type } = argument(site, index);
  return type.kind === 'date'
    ? sql`(${fragment})::timestamp`
    : sql`((${fragment})::timestamptz at time zone ${zone})`;
}

/** A date or datetime as an instant. A date is the start of its day in a zone. */
export function instantAt(site: CallSite, index: number, zone: TimeZone): Sql {
  const { sql: fragment, type } = argument(site, index);
  return type.kind === 'date' ? startOfDay(fragment, zone) : fragment;
}
