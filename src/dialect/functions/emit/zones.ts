import { argument, type CallSite, nodeAt } from '../../compile/functions/site.ts';
import { timeZoneNamed } from '../../compile/time_zones.ts';
import { bind, sql, type Sql } from '../../sql.ts';
import { timeIn, type Type, zoneOf } from '../../types.ts';

/**
 * The time zone that a call works in: the argument of a place if it is there, or that of a time's type, or the project's.
 * @throws DialectError for what is no zone
 */
export const zoneAt = (site: CallSite, place: number | null, time = 0): Sql =>
  bind(zoneNameAt(site, place, time) ?? site.statement.project.timezone, 'text');

const utc = new Set(['UTC', 'Etc/UTC', 'GMT', 'Etc/GMT']);

/**
 * Whether the zone that `zoneAt` says is UTC: its hours, days and weeks are of one length, so that PostgreSQL can divide
 * instead of looking into a calendar, which takes a third of the time.
 */
export const isInUtc = (site: CallSite, place: number | null, time = 0): boolean =>
  utc.has(zoneNameAt(site, place, time) ?? site.statement.project.timezone);

/** A time of the zone that `zoneAt` says. */
export const timeAt = (site: CallSite, place: number | null, nullable: boolean, time = 0): Type =>
  timeIn(zoneNameAt(site, place, time), nullable);

function zoneNameAt(site: CallSite, place: number | null, time: number): string | undefined {
  const named = place === null ? undefined : site.values[place];
  if (place !== null && named !== undefined) return zoneNamed(site, named.constant, place);
  const value = site.values[time];
  return value === undefined ? undefined : zoneOf(value.type);
}

function zoneNamed(site: CallSite, name: unknown, place: number): string {
  if (typeof name !== 'string')
    throw site.statement.error(
      "The time zone is a text that is written out, such as 'Europe/Berlin'.",
      nodeAt(site, place),
    );
  return timeZoneNamed(name, nodeAt(site, place), site.statement);
}

/** A date or a time as the time that clocks of a zone show, without a zone. */
export function localTime(site: CallSite, place: number, zone: Sql): Sql {
  const { sql: piece, type } = argument(site, place);
  return type.kind === 'date'
    ? sql`(${piece})::timestamp`
    : sql`((${piece})::timestamptz at time zone ${zone})`;
}

/** The moment at which clocks of a zone show a time. */
export const momentOf = (local: Sql, zone: Sql): Sql => sql`((${local}) at time zone ${zone})`;
