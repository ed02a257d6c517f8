import { argument, type CallSite, type Emitter, nodeAt } from '../../compile/functions/site.ts';
import { defaultOf, toJson } from '../../compile/json_values.ts';
import { toText } from '../../compile/to_text.ts';
import type { Value } from '../../resolve/value.ts';
import { bind, sql, type Sql } from '../../sql.ts';
import { arrayOf, scalar, tupleOf, type Type, withNull } from '../../types.ts';
import { isJson, jsonOfText } from './json_texts.ts';
import { once, onceOf } from './once.ts';
import { typeOfText } from './type_texts.ts';

/** What stands at a path, as jsonb; null where there is nothing. A text that is no JSON has nothing in it. */
function documentAt(site: CallSite, keys = site.values.slice(1)): Value {
  const value = argument(site, 0);
  const root: Value = { ...value, sql: documentOf(value), type: scalar('json', true) };
  return keys.reduce((document, key) => ({ ...document, sql: step(document, key, site) }), root);
}

function documentOf(value: Value): Sql {
  if (value.json !== undefined) {
    const { document, keys } = value.json;
    return keys.reduce((made, key) => sql`${made} -> ${key}`, sql`(${document})::jsonb`);
  }
  switch (value.type.kind) {
    case 'json':
    case 'array':
    case 'tuple':
    case 'map':
      return sql`(${value.sql})::jsonb`;
    case 'string':
    case 'null':
      return jsonOfText(value.sql);
    default:
      return toJson(value.sql, value.type);
  }
}

/** Places count from one, from the end if negative; in an object a place is that of a member. */
function step(document: Value, key: Value, site: CallSite): Sql {
  if (key.type.kind !== 'integer') return sql`(${document.sql} -> ${toText(key, site.statement)})`;
  const { constant } = key;
  const place =
    typeof constant === 'bigint'
      ? bind(String(constant > 0n ? constant - 1n : constant), 'int4')
      : sql`(case when ${key.sql} > 0 then ${key.sql} - 1 else ${key.sql} end)::int4`;
  return sql`(${document.sql} -> ${place})`;
}

const withPath =
  (make: (document: Sql) => Sql, type: Type): Emitter =>
  (site) => ({ sql: once([documentAt(site)], (document = sql``) => make(document)), type });

/** A text as JSON text; jsonb of PostgreSQL writes blanks behind `:` and `,`. */
export const compactText = (document: Sql): Sql =>
  sql`regexp_replace((${document})::text, '("([^"\\\\]|\\\\.)*")|[ ]', '\\1', 'g')`;

const text = (document: Sql): Sql => sql`(${document} #>> '{}')`;
const typeOf = (document: Sql): Sql => sql`jsonb_typeof(${document})`;

const numberAt = (document: Sql, from: Sql, to: Sql): Sql =>
  sql`coalesce(case ${typeOf(document)} when 'number' then
      case when trunc((${document})::numeric) between ${from} and ${to} then trunc((${document})::numeric)::int8 end
    when 'string' then case when ${text(document)} ~ '^-?[0-9]{1,18}$' then case when (${text(document)})::int8 between ${from} and ${to} then (${text(document)})::int8 end end end, 0)`;

const floatAt = (document: Sql): Sql =>
  sql`coalesce(case ${typeOf(document)} when 'number' then
      case when abs((${document})::numeric) < 1.7e308 then (${document})::float8 end
    when 'boolean' then (${document} = 'true'::jsonb)::int4::float8
    when 'string' then case when ${text(document)} ~ '^-?[0-9]{1,100}([.][0-9]{1,100})?([eE][-+]?[0-9]{1,2})?$' then (${text(document)})::float8 end end, 0)`;

const textAt = (document: Sql): Sql =>
  sql`coalesce(case ${typeOf(document)} when 'string' then ${text(document)} when 'null' then '' else ${compactText(document)} end, '')`;

const lengthOf = (document: Sql): Sql =>
  sql`(case ${typeOf(document)} when 'array' then jsonb_array_length(${document})
    when 'object' then (select count(*) from jsonb_object_keys(${document})) else 0 end)::int8`;

const typeNames = (document: Sql): Sql =>
  sql`(case ${typeOf(document)} when 'string' then 'String' when 'boolean' then 'Bool' when 'array' then 'Array'
    when 'object' then 'Object' when 'number' then case when (${document})::text ~ '[.eE]' then 'Double' else 'Int64' end else 'Null' end)`;

const members = (document: Sql, item: Sql): Sql =>
  sql`(case when ${typeOf(document)} = 'object' then (select coalesce(jsonb_agg(${item}), '[]'::jsonb)
    from jsonb_each(${document}) as member) else '[]'::jsonb end)`;

const itemsRaw = (document: Sql): Sql =>
  sql`(case when ${typeOf(document)} = 'array' then (select coalesce(jsonb_agg(${compactText(sql`item.value`)} order by item.ordinality), '[]'::jsonb)
    from jsonb_array_elements(${document}) with ordinality as item) else '[]'::jsonb end)`;

const raw = (document: Sql): Sql => sql`coalesce(${compactText(document)}, '')`;

/** What is read as a type; a default of the type where it cannot be. */
function readAs(document: Sql, type: Type): Sql {
  switch (type.kind) {
    case 'string':
      return type.nullable ? sql`nullif(${textAt(document)}, '')` : textAt(document);
    case 'integer':
      return numberAt(document, sql`-9223372036854775808`, sql`9223372036854775807`);
    case 'float':
      return floatAt(document);
    case 'decimal':
      return sql`(${floatAt(document)})::numeric`;
    case 'boolean':
      return sql`coalesce(${document} = 'true'::jsonb, false)`;
    case 'json':
      return document;
    case 'array':
      return sql`(case when ${typeOf(document)} = 'array' then (select coalesce(jsonb_agg(${toJson(readAs(sql`item.value`, type.item), type.item)} order by item.ordinality), '[]'::jsonb)
        from jsonb_array_elements(${document}) with ordinality as item) else '[]'::jsonb end)`;
    case 'map':
      return sql`(case when ${typeOf(document)} = 'object' then (select coalesce(jsonb_object_agg(member.key, ${toJson(readAs(sql`member.value`, type.value), type.value)}), '{}'::jsonb)
        from jsonb_each(${document}) as member) else '{}'::jsonb end)`;
    default:
      return defaultOf(withNull(type, false));
  }
}

const extractable = new Set(['string', 'integer', 'float', 'decimal', 'boolean', 'json', 'array', 'map']);

const extract: Emitter = (site) => {
  const last = site.values.length - 1;
  const type = typeOfText(site, last);
  if (!extractable.has(type.kind) || (type.kind === 'array' && !extractable.has(type.item.kind)))
    throw site.statement.error(
      `'${site.name}' reads no such type.`,
      nodeAt(site, last),
      'Take String, Int64, Float64, Bool, an Array of them or a Map(String, …).',
    );
  const document = documentAt(site, site.values.slice(1, -1));
  if (!type.nullable) return { sql: once([document], (found = sql``) => readAs(found, type)), type };
  const found = once(
    [document],
    (one = sql``) =>
      sql`(case when ${typeOf(one)} <> 'null' and ${readable(one, type)} then ${readAs(one, withNull(type, false))} end)`,
  );
  return { sql: found, type };
};

/** Whether a value is of a type, so that a nullable one gives null rather than a default. */
function readable(document: Sql, type: Type): Sql {
  switch (type.kind) {
    case 'integer':
      return sql`(${typeOf(document)} = 'boolean' or ${text(document)} ~ '^-?[0-9]{1,18}([.]0*)?$')`;
    case 'float':
    case 'decimal':
      return sql`(${typeOf(document)} = 'boolean' or ${text(document)} ~ '^-?[0-9.]+([eE][-+]?[0-9]+)?$')`;
    case 'boolean':
      return sql`(${typeOf(document)} = 'boolean')`;
    default:
      return sql`true`;
  }
}

/** A path such as `$.a.b[0]`, which has to be written out: one that is no path would make the statement fail. */
const jsonValue: Emitter = (site) => {
  const path = argument(site, 1).constant;
  if (
    typeof path !== 'string' ||
    !/^\$(\.[\p{L}_$][\p{L}\p{N}_$]*|\."[^"\\]*"|\[(\d{1,6}|\*)\])*$/u.test(path)
  )
    throw site.statement.error(
      "The path is a text that is written out, such as '$.a[0].b'.",
      nodeAt(site, 1),
    );
  const document = documentAt(site, []);
  const found = sql`jsonb_path_query_first(${document.sql}, ${bind(path, 'text')}::jsonpath)`;
  return {
    sql: onceOf(
      [found],
      (one = sql``) =>
        sql`(case when ${typeOf(one)} in ('array', 'object') or ${one} is null then '' else coalesce(${text(one)}, '') end)`,
    ),
    type: scalar('string'),
  };
};

/** What reads JSON, in texts and in columns of documents. */
export const documentEmitters: Readonly<Record<string, Emitter>> = {
  JSONHas: withPath((document) => sql`(${document} is not null)`, scalar('boolean')),
  JSONLength: withPath((document) => sql`coalesce(${lengthOf(document)}, 0)`, scalar('integer')),
  JSONType: withPath(typeNames, scalar('string')),
  JSONExtract: extract,
  JSONExtractString: withPath(textAt, scalar('string')),
  JSONExtractInt: withPath(
    (document) => numberAt(document, sql`-9223372036854775808`, sql`9223372036854775807`),
    scalar('integer'),
  ),
  JSONExtractUInt: withPath(
    (document) => numberAt(document, sql`0`, sql`9223372036854775807`),
    scalar('integer'),
  ),
  JSONExtractFloat: withPath(floatAt, scalar('float')),
  JSONExtractBool: withPath(
    (document) => sql`coalesce(${document} in ('true'::jsonb, '1'::jsonb), false)`,
    scalar('boolean'),
  ),
  JSONExtractRaw: withPath(raw, scalar('string')),
  JSONExtractArrayRaw: withPath(itemsRaw, arrayOf(scalar('string'))),
  JSONExtractKeys: withPath(
    (document) => members(document, sql`to_jsonb(member.key)`),
    arrayOf(scalar('string')),
  ),
  JSONExtractKeysAndValuesRaw: withPath(
    (document) => members(document, sql`jsonb_build_array(member.key, ${compactText(sql`member.value`)})`),
    arrayOf(tupleOf([scalar('string'), scalar('string')])),
  ),
  JSON_VALUE: jsonValue,
  isValidJSON: (site) => ({
    sql: once([argument(site, 0)], (text = sql``) => isJson(text)),
    type: scalar('boolean', argument(site, 0).type.nullable),
  }),
  JSONArrayLength: withPath(
    (document) =>
      sql`(case when ${typeOf(document)} = 'array' then jsonb_array_length(${document})::int8 end)`,
    scalar('integer', true),
  ),
};
