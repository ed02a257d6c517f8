import type { Statement } from '../resolve/statement.ts';
import { sql, type Sql } from '../sql.ts';
import type { Type } from '../types.ts';
import { postgresType } from './json_values.ts';

// Casts of texts whose content is only known when the query runs. What cannot be read becomes null: a cast of
// PostgreSQL itself would make the whole query fail. A case is the only thing that keeps it from being computed.

/** Longer pieces are computed once, in a query of their own. */
const repeatable = 200;

function guarded(text: Sql, cast: (text: Sql) => Sql): Sql {
  if (text.size <= repeatable) return cast(text);
  return sql`(select ${cast(sql`given.t`)} from (select ${text} as t) as given)`;
}

/** A text as a value of another type, or null. */
export function castTextTo(text: Sql, type: Type, statement: Statement): Sql {
  switch (type.kind) {
    case 'float':
    case 'decimal':
      return guarded(
        text,
        (piece) => sql`(case when length(${piece}) <= 200 and ${piece} ~ ${isNumber}
          then (${piece})::${postgresType(type)} end)`,
      );
    case 'integer':
      return guarded(
        text,
        (piece) => sql`(case when ${piece} ~ '^[-+]?[0-9]{1,18}$' then (${piece})::int8 end)`,
      );
    case 'boolean':
      return guarded(
        text,
        (piece) => sql`(case lower(${piece}) when 'true' then true when '1' then true
          when 'false' then false when '0' then false end)`,
      );
    case 'uuid':
      return guarded(
        text,
        (piece) => sql`(case when ${piece} ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
          then (${piece})::uuid end)`,
      );
    case 'datetime':
      return guarded(text, (piece) => timeOf(piece, statement.zoneOf(type)));
    case 'date':
      return guarded(
        text,
        (piece) => sql`((${timeOf(piece, statement.timezone)} at time zone ${statement.timezone})::date)`,
      );
    default:
      return text;
  }
}

/** How long a number may be is asked for apart: counts in a pattern would make it ten times as slow. */
const isNumber = sql`'^[-+]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][-+]?[0-9]{1,2})?$'`;

const isTime = sql`'^(?!0000)[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])([T ]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{1,9})?)?(Z|[-+](0[0-9]|1[0-4])(:?[0-5][0-9])?)?)?$'`;

/** Without an offset it is a time of the zone. Days that a month does not have are null. */
const timeOf = (text: Sql, timezone: Sql): Sql => sql`(case when ${text} ~ ${isTime} then
  case when substr(${text}, 9, 2)::int4 <= extract(day from (substr(${text}, 1, 7) || '-01')::date + interval '1 month - 1 day')
  then case when substr(${text}, 11) ~ '(Z|[-+][0-9:]+)$' then (${text})::timestamptz
  else ((${text})::timestamp at time zone ${timezone}) end end end)`;
