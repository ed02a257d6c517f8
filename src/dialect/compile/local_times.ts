import { sql, type Sql } from '../sql.ts';
import type { TimeZone } from '../time_zone.ts';
import { computeSqlOnce } from './compute_once.ts';
import { repeatsMidnight } from './repeated_midnights.ts';

/** Longer fragments are computed once, in a subquery. PostgreSQL plans better with constants outside of subqueries. */
const maxRepeatedLength = 200;

/**
 * The instant of a local time. Of a time that a clock change repeats, the first occurrence; PostgreSQL takes the second. A
 * time that a clock change skips is moved forward by the length of the gap.
 */
export function instantOf(local: Sql, zone: TimeZone): Sql {
  if (zone.isUtc) return second(local, zone);
  if (local.length <= maxRepeatedLength) return firstOf(local, zone);
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
  if (moment.length <= maxRepeatedLength) return addRepeated(moment, operator, interval, zone);
  return computeSqlOnce([moment], (at = sql``) => addRepeated(at, operator, interval, zone));
}

function addRepeated(moment: Sql, operator: Sql, interval: Sql, zone: TimeZone): Sql {
  const local = sql`(${moment} at time zone ${zone})`;
  const target = sql`(${local} ${operator} ${interval})`;
  const sameOffset = sql`(((${moment} at time zone 'UTC') + (${target} - ${local})) at time zone 'UTC')`;
  return sql`(case when (${sameOffset} at time zone ${zone}) = ${target}
    then ${sameOffset} else ${instantOf(target, zone)} end)`;
}
