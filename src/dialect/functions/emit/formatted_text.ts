import type { CallSite } from '../../compile/functions/call_site.ts';
import { toStringSql } from '../../compile/to_string.ts';
import type { Value } from '../../resolve/value.ts';
import { bind, commaList, sql, type Sql } from '../../sql.ts';
import { isNumber, type Type } from '../../types.ts';
import { computeOnce } from '../../compile/compute_once.ts';

/**
 * A value as a string: numbers as ClickHouse formats them, with exponents from 1e21 and below 1e-6, and datetimes as
 * local times of a zone.
 */
export function formattedText(
  site: CallSite,
  value: Value,
  zone: Sql = site.statement.zoneOf(value.type),
): Sql {
  if (value.type.kind === 'float')
    return computeOnce(
      [value],
      (
        x = sql``,
      ) => sql`(case when ${x} in ('NaN', 'Infinity', '-Infinity') then replace(replace(lower((${x})::text), 'inity', ''), 'nan', 'nan')
      when ${x} = 0 then '0' when abs(${x}) < 1e21 and abs(${x}) >= 1e-6 then trim_scale((${x})::numeric)::text
      else regexp_replace(regexp_replace((${x})::text, 'e[+]', 'e'), 'e-0', 'e-') end)`,
    );
  if (value.type.kind === 'array' || value.type.kind === 'tuple' || value.type.kind === 'map')
    return formattedLiteral(value.sql, value.type, 0);
  return toStringSql(value, site.statement, zone);
}

/** Arrays, tuples and maps as literals of a query: `['a',1]`. */
function formattedLiteral(json: Sql, type: Type, depth: number): Sql {
  const quoted = (text: Sql): Sql =>
    sql`('''' || replace(replace(${text}, '\\', '\\\\'), '''', '\\''') || '''')`;
  const textOf = (item: Sql, inner: Type): Sql => {
    if (inner.kind === 'array' || inner.kind === 'tuple' || inner.kind === 'map')
      return formattedLiteral(item, inner, depth + 1);
    const text = sql`(${item} #>> '{}')`;
    const formatted =
      isNumber(inner) || inner.kind === 'boolean' || inner.kind === 'null' ? text : quoted(text);
    return sql`coalesce(${formatted}, 'NULL')`;
  };
  const name = sql`shown`;
  if (type.kind === 'array')
    return sql`(select '[' || coalesce(string_agg(${textOf(sql`${name}.value`, type.item)}, ',' order by ${name}.ordinality), '') || ']'
      from jsonb_array_elements(${json}) with ordinality as ${name})`;
  if (type.kind === 'map')
    return sql`(select '{' || coalesce(string_agg(${quoted(sql`${name}.key`)} || ':' || ${textOf(sql`${name}.value`, type.value)}, ','), '') || '}'
      from jsonb_each(${json}) as ${name})`;
  if (type.kind !== 'tuple') return sql`(${json})::text`;
  const items = type.items.map((item, index) => textOf(sql`(${json} -> ${sqlIndex(index)})`, item));
  return items.length === 0 ? sql`'()'::text` : sql`('(' || concat_ws(',', ${commaList(items)}) || ')')`;
}

const sqlIndex = (index: number): Sql => bind(String(index), 'int4');
