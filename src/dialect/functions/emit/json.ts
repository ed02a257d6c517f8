import { argument, type CallSite, type Emitter, argumentNode } from '../../compile/functions/call_site.ts';
import { defaultOf, toJson } from '../../compile/json_values.ts';
import { toStringSql } from '../../compile/to_string.ts';
import type { Value } from '../../resolve/value.ts';
import { bind, sql, type Sql } from '../../sql.ts';
import { arrayOf, scalar, tupleOf, type Type, withNull } from '../../types.ts';
import { isJson, parseJson } from './json_parsing.ts';
import { computeOnce, computeSqlOnce } from '../../compile/compute_once.ts';
import { typeFromLiteral } from './named_types.ts';

/** The jsonb at a path; null if there is none. A string that is not JSON is empty. */
function jsonAt(site: CallSite, keys = site.values.slice(1)): Value {
  const value = argument(site, 0);
  const root: Value = { ...value, sql: jsonRoot(value), type: scalar('json', true) };
  return keys.reduce((json, key) => ({ ...json, sql: accessKey(json, key, site) }), root);
}

function jsonRoot(value: Value): Sql {
  if (value.json !== undefined) {
    const { root: json, keys } = value.json;
    return keys.reduce((made, key) => sql`${made} -> ${key}`, sql`(${json})::jsonb`);
  }
  switch (value.type.kind) {
    case 'json':
    case 'array':
    case 'tuple':
    case 'map':
      return sql`(${value.sql})::jsonb`;
    case 'string':
    case 'null':
      return parseJson(value.sql);
    default:
      return toJson(value.sql, value.type);
  }
}

/** Indexes start at 1, or count from the end if negative. */
function accessKey(json: Value, key: Value, site: CallSite): Sql {
  if (key.type.kind !== 'integer') return sql`(${json.sql} -> ${toStringSql(key, site.statement)})`;
  const { constant } = key;
  const index =
    typeof constant === 'bigint'
      ? bind(String(constant > 0n ? constant - 1n : constant), 'int4')
      : sql`(case when ${key.sql} > 0 then ${key.sql} - 1 else ${key.sql} end)::int4`;
  return sql`(${json.sql} -> ${index})`;
}

const withPath =
  (make: (json: Sql) => Sql, type: Type): Emitter =>
  (site) => ({ sql: computeOnce([jsonAt(site)], (json = sql``) => make(json)), type });

/** JSON text without the spaces that jsonb adds after `:` and `,`. */
export const compactText = (json: Sql): Sql =>
  sql`regexp_replace((${json})::text, '("([^"\\\\]|\\\\.)*")|[ ]', '\\1', 'g')`;

const jsonAsText = (json: Sql): Sql => sql`(${json} #>> '{}')`;
const typeOf = (json: Sql): Sql => sql`jsonb_typeof(${json})`;

const numberAt = (json: Sql, from: Sql, to: Sql): Sql =>
  sql`coalesce(case ${typeOf(json)} when 'number' then
      case when trunc((${json})::numeric) between ${from} and ${to} then trunc((${json})::numeric)::int8 end
    when 'string' then case when ${jsonAsText(json)} ~ '^-?[0-9]{1,18}$' then case when (${jsonAsText(json)})::int8 between ${from} and ${to} then (${jsonAsText(json)})::int8 end end end, 0)`;

const floatAt = (json: Sql): Sql =>
  sql`coalesce(case ${typeOf(json)} when 'number' then
      case when abs((${json})::numeric) < 1.7e308 then (${json})::float8 end
    when 'boolean' then (${json} = 'true'::jsonb)::int4::float8
    when 'string' then case when ${jsonAsText(json)} ~ '^-?[0-9]{1,100}([.][0-9]{1,100})?([eE][-+]?[0-9]{1,2})?$' then (${jsonAsText(json)})::float8 end end, 0)`;

const stringAt = (json: Sql): Sql =>
  sql`coalesce(case ${typeOf(json)} when 'string' then ${jsonAsText(json)} when 'null' then '' else ${compactText(json)} end, '')`;

const lengthOf = (json: Sql): Sql =>
  sql`(case ${typeOf(json)} when 'array' then jsonb_array_length(${json})
    when 'object' then (select count(*) from jsonb_object_keys(${json})) else 0 end)::int8`;

const typeNames = (json: Sql): Sql =>
  sql`(case ${typeOf(json)} when 'string' then 'String' when 'boolean' then 'Bool' when 'array' then 'Array'
    when 'object' then 'Object' when 'number' then case when (${json})::text ~ '[.eE]' then 'Double' else 'Int64' end else 'Null' end)`;

const objectEntries = (json: Sql, item: Sql): Sql =>
  sql`(case when ${typeOf(json)} = 'object' then (select coalesce(jsonb_agg(${item}), '[]'::jsonb)
    from jsonb_each(${json}) as entry) else '[]'::jsonb end)`;

const itemsRaw = (json: Sql): Sql =>
  sql`(case when ${typeOf(json)} = 'array' then (select coalesce(jsonb_agg(${compactText(sql`item.value`)} order by item.ordinality), '[]'::jsonb)
    from jsonb_array_elements(${json}) with ordinality as item) else '[]'::jsonb end)`;

const rawJson = (json: Sql): Sql => sql`coalesce(${compactText(json)}, '')`;

/** Reads JSON as a type; a default of the type if it does not match. */
function readAs(json: Sql, type: Type): Sql {
  switch (type.kind) {
    case 'string':
      return type.nullable ? sql`nullif(${stringAt(json)}, '')` : stringAt(json);
    case 'integer':
      return numberAt(json, sql`-9223372036854775808`, sql`9223372036854775807`);
    case 'float':
      return floatAt(json);
    case 'decimal':
      return sql`(${floatAt(json)})::numeric`;
    case 'boolean':
      return sql`coalesce(${json} = 'true'::jsonb, false)`;
    case 'json':
      return json;
    case 'array':
      return sql`(case when ${typeOf(json)} = 'array' then (select coalesce(jsonb_agg(${toJson(readAs(sql`item.value`, type.item), type.item)} order by item.ordinality), '[]'::jsonb)
        from jsonb_array_elements(${json}) with ordinality as item) else '[]'::jsonb end)`;
    case 'map':
      return sql`(case when ${typeOf(json)} = 'object' then (select coalesce(jsonb_object_agg(entry.key, ${toJson(readAs(sql`entry.value`, type.value), type.value)}), '{}'::jsonb)
        from jsonb_each(${json}) as entry) else '{}'::jsonb end)`;
    default:
      return defaultOf(withNull(type, false));
  }
}

const extractable = new Set(['string', 'integer', 'float', 'decimal', 'boolean', 'json', 'array', 'map']);

const extract: Emitter = (site) => {
  const last = site.values.length - 1;
  const type = typeFromLiteral(site, last);
  if (!extractable.has(type.kind) || (type.kind === 'array' && !extractable.has(type.item.kind)))
    throw site.statement.error(
      `'${site.name}' does not support this type.`,
      argumentNode(site, last),
      'Use String, Int64, Float64, Bool, an Array of them or a Map(String, …).',
    );
  const json = jsonAt(site, site.values.slice(1, -1));
  if (!type.nullable) return { sql: computeOnce([json], (found = sql``) => readAs(found, type)), type };
  const found = computeOnce(
    [json],
    (one = sql``) =>
      sql`(case when ${typeOf(one)} <> 'null' and ${readable(one, type)} then ${readAs(one, withNull(type, false))} end)`,
  );
  return { sql: found, type };
};

/** Whether JSON matches a type, so that nullable types yield null rather than a default. */
function readable(json: Sql, type: Type): Sql {
  switch (type.kind) {
    case 'integer':
      return sql`(${typeOf(json)} = 'boolean' or ${jsonAsText(json)} ~ '^-?[0-9]{1,18}([.]0*)?$')`;
    case 'float':
    case 'decimal':
      return sql`(${typeOf(json)} = 'boolean' or ${jsonAsText(json)} ~ '^-?[0-9.]+([eE][-+]?[0-9]+)?$')`;
    case 'boolean':
      return sql`(${typeOf(json)} = 'boolean')`;
    default:
      return sql`true`;
  }
}

/** A path such as `$.a.b[0]`. It must be a literal, because an invalid path would fail the statement. */
const jsonValue: Emitter = (site) => {
  const path = argument(site, 1).constant;
  if (
    typeof path !== 'string' ||
    !/^\$(\.[\p{L}_$][\p{L}\p{N}_$]*|\."[^"\\]*"|\[(\d{1,6}|\*)\])*$/u.test(path)
  )
    throw site.statement.error(
      "The path must be a string literal such as '$.a[0].b'.",
      argumentNode(site, 1),
    );
  const json = jsonAt(site, []);
  const found = sql`jsonb_path_query_first(${json.sql}, ${bind(path, 'text')}::jsonpath)`;
  return {
    sql: computeSqlOnce(
      [found],
      (one = sql``) =>
        sql`(case when ${typeOf(one)} in ('array', 'object') or ${one} is null then '' else coalesce(${jsonAsText(one)}, '') end)`,
    ),
    type: scalar('string'),
  };
};

/** JSON functions of strings and JSON columns. */
export const jsonEmitters = {
  JSONHas: withPath((json) => sql`(${json} is not null)`, scalar('boolean')),
  JSONLength: withPath((json) => sql`coalesce(${lengthOf(json)}, 0)`, scalar('integer')),
  JSONType: withPath(typeNames, scalar('string')),
  JSONExtract: extract,
  JSONExtractString: withPath(stringAt, scalar('string')),
  JSONExtractInt: withPath(
    (json) => numberAt(json, sql`-9223372036854775808`, sql`9223372036854775807`),
    scalar('integer'),
  ),
  JSONExtractUInt: withPath((json) => numberAt(json, sql`0`, sql`9223372036854775807`), scalar('integer')),
  JSONExtractFloat: withPath(floatAt, scalar('float')),
  JSONExtractBool: withPath(
    (json) => sql`coalesce(${json} in ('true'::jsonb, '1'::jsonb), false)`,
    scalar('boolean'),
  ),
  JSONExtractRaw: withPath(rawJson, scalar('string')),
  JSONExtractArrayRaw: withPath(itemsRaw, arrayOf(scalar('string'))),
  JSONExtractKeys: withPath(
    (json) => objectEntries(json, sql`to_jsonb(entry.key)`),
    arrayOf(scalar('string')),
  ),
  JSONExtractKeysAndValuesRaw: withPath(
    (json) => objectEntries(json, sql`jsonb_build_array(entry.key, ${compactText(sql`entry.value`)})`),
    arrayOf(tupleOf([scalar('string'), scalar('string')])),
  ),
  JSON_VALUE: jsonValue,
  isValidJSON: (site) => ({
    sql: computeOnce([argument(site, 0)], (jsonAsText = sql``) => isJson(jsonAsText)),
    type: scalar('boolean', argument(site, 0).type.nullable),
  }),
  JSONArrayLength: withPath(
    (json) => sql`(case when ${typeOf(json)} = 'array' then jsonb_array_length(${json})::int8 end)`,
    scalar('integer', true),
  ),
} satisfies Readonly<Record<string, Emitter>>;
