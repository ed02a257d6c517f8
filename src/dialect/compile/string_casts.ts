import type { Statement } from '../resolve/statement.ts';
import { sql, type Sql } from '../sql.ts';
import type { TimeZone } from '../time_zone.ts';
import type { Type } from '../types.ts';
import { postgresType } from './json_values.ts';
import { instantOf } from './local_times.ts';

// Casts of strings known only at run time. Unreadable values become null; a PostgreSQL cast would fail the query. Only
// CASE guarantees that the cast is not evaluated.

/** Longer fragments are computed once, in a subquery. */
const maxRepeatedLength = 200;

function computedOnce(text: Sql, cast: (text: Sql) => Sql): Sql {
  if (text.length <= maxRepeatedLength) return cast(text);
  return sql`(select ${cast(sql`given.t`)} from (select ${text} as t) as given)`;
}

/** Casts a string to another type; null if it does not parse. */
export function castStringTo(text: Sql, type: Type, statement: Statement): Sql {
  switch (type.kind) {
    case 'float':
    case 'decimal':
      return computedOnce(
        text,
        (fragment) => sql`(case when length(${fragment}) <= 200 and ${fragment} ~ ${numberPattern}
          then (${fragment})::${postgresType(type)} end)`,
      );
    case 'integer':
      return computedOnce(
        text,
        (fragment) => sql`(case when ${fragment} ~ '^[-+]?[0-9]{1,18}$' then (${fragment})::int8 end)`,
      );
    case 'boolean':
      return computedOnce(
        text,
        (fragment) => sql`(case lower(${fragment}) when 'true' then true when '1' then true
          when 'false' then false when '0' then false end)`,
      );
    case 'uuid':
      return computedOnce(
        text,
        (fragment) => sql`(case when ${fragment} ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
          then (${fragment})::uuid end)`,
      );
    case 'datetime':
      return computedOnce(text, (fragment) => timeOf(fragment, statement.zoneOf(type)));
    case 'date':
      return computedOnce(
        text,
        (fragment) =>
          sql`((${timeOf(fragment, statement.timezone)} at time zone ${statement.timezone})::date)`,
      );
    default:
      return text;
  }
}

/** The length of a number is checked separately: bounded repetition in the pattern is ten times slower. */
const numberPattern = sql`'^[-+]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][-+]?[0-9]{1,2})?$'`;

const timePattern = sql`'^(?!0000)[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])([T ]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{1,9})?)?(Z|[-+](0[0-9]|1[0-4])(:?[0-5][0-9])?)?)?$'`;

/** Parses a time; without an offset it is in the zone. Days beyond the end of the month are null. */
const timeOf = (text: Sql, timezone: TimeZone): Sql => sql`(case when ${text} ~ ${timePattern} then
  case when substr(${text}, 9, 2)::int4 <= extract(day from (substr(${text}, 1, 7) || '-01')::date + interval '1 month - 1 day')
  then case when substr(${text}, 11) ~ '(Z|[-+][0-9:]+)$' then (${text})::timestamptz
  else ${instantOf(sql`(${text})::timestamp`, timezone)} end end end)`;
