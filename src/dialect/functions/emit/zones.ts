import { argument, type CallSite, argumentNode } from '../../compile/functions/call_site.ts';
import { timeZoneNamed } from '../../compile/time_zones.ts';
import { bind, sql, type Sql } from '../../sql.ts';
import { timeIn, type Type, zoneOf } from '../../types.ts';

/**
 * The time zone that a call works in: the argument of a place if it is there, or that of a time's type, or the project's.
 * @throws DialectError for what is no zone
 */
export const zoneAt = (site: CallSite, index: number | null, time = 0): Sql =>
  bind(zoneNameAt(site, index, time) ?? site.statement.project.timezone, 'text');

const utc = new Set(['UTC', 'Etc/UTC', 'GMT', 'Etc/GMT']);

/**
 * Whether the zone that `zoneAt` says is UTC: its hours, days and weeks are of one length, so that PostgreSQL can divide
 * instead of looking into a calendar, which takes a third of the time.
 */
export const isInUtc = (site: CallSite, index: number | null, time = 0): boolean =>
  utc.has(zoneNameAt(site, index, time) ?? site.statement.project.timezone);

/** A time of the zone that `zoneAt` says. */
export const timeAt = (site: CallSite, index: number | null, nullable: boolean, time = 0): Type =>
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

/** A date or a time as the time that clocks of a zone show, without a zone. */
export function localTime(site: CallSite, index: number, zone: Sql): Sql {
  const { sql: fragment, type } = argument(site, index);
  return type.kind === 'date'
    ? sql`(${fragment})::timestamp`
    : sql`((${fragment})::timestamptz at time zone ${zone})`;
}

/** The moment at which clocks of a zone show a time. */
export const momentOf = (local: Sql, zone: Sql): Sql => sql`((${local}) at time zone ${zone})`;
