import type { Statement } from '../resolve/statement.ts';
import type { Value } from '../resolve/value.ts';
import { sql, type Sql } from '../sql.ts';
import { jsonToString } from './coerce.ts';

/** A value as a string. Datetimes are local times of their zone, or of `zone`, without an offset. */
export function toStringSql(
  { sql: fragment, type }: Value,
  statement: Statement,
  zone: Sql = statement.zoneOf(type),
): Sql {
  switch (type.kind) {
    case 'string':
    case 'null':
      return fragment;
    case 'datetime':
      return sql`regexp_replace(to_char(${fragment} at time zone ${zone}, 'YYYY-MM-DD HH24:MI:SS.US'), '[.]000000$', '')`;
    case 'date':
      return sql`to_char(${fragment}, 'YYYY-MM-DD')`;
    case 'json':
      return jsonToString(fragment);
    case 'float':
      return sql`(case (${fragment})::text when 'NaN' then 'nan' when 'Infinity' then 'inf' when '-Infinity' then '-inf'
        else (${fragment})::text end)`;
    default:
      return sql`(${fragment})::text`;
  }
}
