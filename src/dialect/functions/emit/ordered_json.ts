import { toJson } from '../../compile/json_values.ts';
import { sql, type Sql } from '../../sql.ts';
import type { Type } from '../../types.ts';

/** Values that are strings in JSON. There, booleans follow all numbers, arrays follow booleans, strings precede numbers. */
const notFinite = sql`'{"Infinity": true, "-Infinity": "", "NaN": [1]}'::jsonb`;

/** A value as jsonb that sorts like the value. Not for strings, which sort by bytes. */
export function orderedJson(value: Sql, type: Type): Sql {
  switch (type.kind) {
    case 'float':
    case 'decimal':
      return sql`coalesce(${notFinite} -> (${value})::text, to_jsonb(${value}))`;
    case 'date':
    case 'datetime': {
      const infinite = sql`case when ${value} > '1970-01-01' then 'true'::jsonb else '""'::jsonb end`;
      return sql`(case when isfinite(${value}) then to_jsonb(extract(epoch from ${value})) else ${infinite} end)`;
    }
    case 'interval':
      return sql`to_jsonb(extract(epoch from ${value}))`;
    default:
      return toJson(value, type);
  }
}
