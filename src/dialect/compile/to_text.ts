import type { Statement } from '../resolve/statement.ts';
import type { Value } from '../resolve/value.ts';
import { sql, type Sql } from '../sql.ts';
import { jsonText } from './coerce.ts';

/** A value as text, as analysts see it: times as clocks of their zone or another show them, without an offset. */
export function toText(
  { sql: piece, type }: Value,
  statement: Statement,
  zone: Sql = statement.zoneOf(type),
): Sql {
  switch (type.kind) {
    case 'string':
    case 'null':
      return piece;
    case 'datetime':
      return sql`regexp_replace(to_char(${piece} at time zone ${zone}, 'YYYY-MM-DD HH24:MI:SS.US'), '[.]000000$', '')`;
    case 'date':
      return sql`to_char(${piece}, 'YYYY-MM-DD')`;
    case 'json':
      return jsonText(piece);
    case 'float':
      return sql`(case (${piece})::text when 'NaN' then 'nan' when 'Infinity' then 'inf' when '-Infinity' then '-inf'
        else (${piece})::text end)`;
    default:
      return sql`(${piece})::text`;
  }
}
