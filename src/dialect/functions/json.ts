import { computeOnce, computeSqlOnce } from '../compile/compiler.ts';
import { compactText, defaultOf, toJson, toJsonItem, toStringSql } from '../compile/expressions/coerce.ts';
import { jsonArray } from '../many_arguments.ts';
import { derive, type Value } from '../resolve/value.ts';
import { bind, rawSql, sql, type Sql } from '../sql.ts';
import { arrayOf, scalarType, tupleOf, type Type, withNull } from '../types.ts';
import { floatFromString, integerFromString } from './conversions.ts';
import {
  typeFromLiteral,
  argument,
  argumentError,
  type CallSite,
  type Emitter,
  type FunctionDefinition,
  scalar,
} from './function_definition.ts';

/** Maximum nesting depth; deeper strings are not treated as JSON. */
const maxDepth = 24;

const inner = sql`'\\[([\\x01\\x02](,[\\x01\\x02])*)?\\]|\\{(\\x01:[\\x01\\x02](,\\x01:[\\x01\\x02])*)?\\}'`;

/**
 * Whether a string is JSON. PostgreSQL 15 cannot check this without failing, so regular expressions do: strings and
 * scalars become one character each, then arrays and objects are reduced from the inside out until one character is
 * left.
 */
function isJson(text: Sql): Sql {
  const strings = sql`regexp_replace(${text}, '"([^"\\\\\\x01-\\x1f]|\\\\(["\\\\/bfnrt]|u[0-9a-fA-F]{4}))*"', chr(1), 'g')`;
  const scalars = sql`regexp_replace(bare.t, '-?(0|[1-9][0-9]*)([.][0-9]+)?([eE][-+]?[0-9]+)?|true|false|null', chr(2), 'g')`;
  let folded = sql`regexp_replace(${scalars}, '[ \\t\\n\\r]*([][{}:,])[ \\t\\n\\r]*', '\\1', 'g')`;
  for (let depth = 0; depth < maxDepth; depth += 1)
    folded = sql`regexp_replace(${folded}, ${inner}, chr(2), 'g')`;
  return sql`(case when ${text} ~ '[\\x01-\\x08\\x0b\\x0c\\x0e-\\x1f]' then false when ${text} is not null then
    (select case when bare.t ~ '[^]\\x01 \\t\\n\\r[{}:,0-9.+eEtrufalsn-]' then false
      else btrim(${folded}, E' \\t\\n\\r') in (chr(1), chr(2)) end from (select ${strings} as t offset 0) as bare) end)`;
}

/** Escapes that jsonb cannot store, and numbers too long for it. */
const unreadable = (text: Sql): Sql =>
  sql`(${text} ~ '\\\\u0000' or regexp_replace(${text}, '\\\\u[dD][89abAB][0-9a-fA-F]{2}\\\\u[dD][c-fC-F][0-9a-fA-F]{2}', '', 'g') ~* '\\\\ud[89a-f]'
    or ${text} ~ '[0-9][eE][-+]?[0-9]{3}')`;

/** Parses a string to jsonb; null if it is not JSON. */
const parseJson = (text: Sql): Sql =>
  computeSqlOnce(
    [text],
    (t = sql``) => sql`(case when ${isJson(t)} and not ${unreadable(t)} then (${t})::jsonb end)`,
  );

/** The jsonb at a path; null if there is none. A string that is not JSON is empty. */
function jsonAt(site: CallSite, keys = site.values.slice(1)): Value {
  const value = argument(site, 0);
  const root: Value = { ...value, sql: jsonRoot(value), type: scalarType('json', true) };
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
    case 'tuple': {
      // By name from an object, else by position from an array.
      const item = (index: number, name: string | undefined): Sql =>
        name === undefined || name === ''
          ? sql`(${json} -> ${rawSql(String(index))})`
          : sql`(case when ${typeOf(json)} = 'object' then ${json} -> ${bind(name, 'text')} else ${json} -> ${rawSql(String(index))} end)`;
      const items = type.items.map((one, index) =>
        toJsonItem(
          computeSqlOnce([item(index, type.names[index])], (found = sql``) => readAs(found, one)),
          withNull(one),
        ),
      );
      return jsonArray(items);
    }
    default:
      return defaultOf(withNull(type, false));
  }
}

const extractable = new Set([
  'string',
  'integer',
  'float',
  'decimal',
  'boolean',
  'json',
  'array',
  'map',
  'tuple',
]);

const extract: Emitter = (site) => {
  const last = site.values.length - 1;
  const type = typeFromLiteral(site, last);
  if (!extractable.has(type.kind) || (type.kind === 'array' && !extractable.has(type.item.kind)))
    throw argumentError(
      site,
      last,
      `'${site.name}' does not support this type.`,
      'Use String, Int64, Float64, Bool, an Array or a Tuple of them, or a Map(String, …).',
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

/** How ClickHouse reads a value of an object as one of these types; null if it cannot. */
const readFields: Readonly<Partial<Record<Type['kind'], (json: Sql) => Sql>>> = {
  string: (json) => sql`case when ${typeOf(json)} <> 'null' then ${stringAt(json)} end`,
  float: numberIn,
  integer: integerIn,
  boolean: (json) =>
    computeSqlOnce(
      [integerIn(json)],
      (n = sql``) => sql`(case when ${n} between 0 and 255 then ${n} <> 0 end)`,
    ),
};

const textOf = (json: Sql): Value => derive('text', [], scalarType('string', true), sql`${jsonAsText(json)}`);

function numberIn(json: Sql): Sql {
  return sql`case ${typeOf(json)} when 'number' then case when abs((${json})::numeric) < 1.7e308 then (${json})::float8 end
    when 'boolean' then (${json})::bool::int4::float8 when 'string' then ${floatFromString(textOf(json))} end`;
}

function integerIn(json: Sql): Sql {
  const whole = (number: Sql): Sql =>
    computeSqlOnce(
      [sql`trunc(${number})`],
      (n = sql``) =>
        sql`(case when ${n} between -9223372036854775808 and 9223372036854775807 then (${n})::int8 end)`,
    );
  const finite = computeSqlOnce(
    [floatFromString(textOf(json))],
    (x = sql``) => sql`(case when abs(${x}) < 9.2e18 then (${x})::numeric end)`,
  );
  return sql`case ${typeOf(json)} when 'number' then ${whole(sql`(${json})::numeric`)}
    when 'boolean' then (${json})::bool::int4::int8
    when 'string' then coalesce(${integerFromString(textOf(json))}, ${whole(finite)}) end`;
}

/** The fields of an object whose values a type can hold, with their keys. A nullable type also holds null. */
const keysAndValues: Emitter = (site) => {
  const last = site.values.length - 1;
  const type = typeFromLiteral(site, last);
  const read = readFields[type.kind];
  if (read === undefined)
    throw argumentError(
      site,
      last,
      `'${site.name}' does not support this type.`,
      'Use String, Int64, Float64 or Bool, which may be Nullable.',
    );
  const value = withNull(type);
  const isHeld = type.nullable
    ? sql`(one.v is not null or ${typeOf(sql`one.j`)} = 'null')`
    : sql`one.v is not null`;
  return {
    sql: computeOnce(
      [jsonAt(site, site.values.slice(1, -1))],
      (json = sql``) =>
        sql`(case when ${typeOf(json)} = 'object' then (select coalesce(jsonb_agg(jsonb_build_array(one.k, ${toJsonItem(sql`one.v`, value)})) filter (where ${isHeld}), '[]'::jsonb)
          from (select entry.key as k, entry.value as j, ${read(sql`entry.value`)} as v from jsonb_each(${json}) as entry offset 0) as one) else '[]'::jsonb end)`,
    ),
    type: arrayOf(tupleOf([scalarType('string'), type])),
  };
};

/** A path such as `$.a.b[0]`. It must be a literal, because an invalid path would fail the statement. */
const jsonValue: Emitter = (site) => {
  const path = argument(site, 1).constant;
  if (
    typeof path !== 'string' ||
    !/^\$(\.[\p{L}_$][\p{L}\p{N}_$]*|\."[^"\\]*"|\[(\d{1,6}|\*)\])*$/u.test(path)
  )
    throw argumentError(site, 1, "The path must be a string literal such as '$.a[0].b'.");
  const json = jsonAt(site, []);
  const found = sql`jsonb_path_query_first(${json.sql}, ${bind(path, 'text')}::jsonpath)`;
  return {
    sql: computeSqlOnce(
      [found],
      (one = sql``) =>
        sql`(case when ${typeOf(one)} in ('array', 'object') or ${one} is null then '' else coalesce(${jsonAsText(one)}, '') end)`,
    ),
    type: scalarType('string'),
  };
};

/** JSON functions. A path may have any number of keys and indexes. */
export const jsonFunctions: readonly FunctionDefinition[] = [
  scalar(
    'JSONHas(any, any...): boolean',
    'Whether there is a value at a path.',
    withPath((json) => sql`(${json} is not null)`, scalarType('boolean')),
  ),
  scalar(
    'JSONLength(any, any...): integer',
    'Number of items of an array or fields of an object.',
    withPath((json) => sql`coalesce(${lengthOf(json)}, 0)`, scalarType('integer')),
  ),
  scalar(
    'JSONType(any, any...): string',
    'The type of the value at a path.',
    withPath(typeNames, scalarType('string')),
  ),
  scalar('JSONExtract(any, any, any...): any', 'The value at a path as the type given last.', extract),
  scalar(
    'JSONExtractString(any, any...): string',
    "The string at a path, or ''.",
    withPath(stringAt, scalarType('string')),
  ),
  scalar(
    'JSONExtractInt(any, any...): integer',
    'The integer at a path, or 0.',
    withPath(
      (json) => numberAt(json, sql`-9223372036854775808`, sql`9223372036854775807`),
      scalarType('integer'),
    ),
  ),
  scalar(
    'JSONExtractUInt(any, any...): integer',
    'The positive integer at a path, or 0.',
    withPath((json) => numberAt(json, sql`0`, sql`9223372036854775807`), scalarType('integer')),
  ),
  scalar(
    'JSONExtractFloat(any, any...): float',
    'The number at a path, or 0.',
    withPath(floatAt, scalarType('float')),
  ),
  scalar(
    'JSONExtractBool(any, any...): boolean',
    'The boolean at a path, or false.',
    withPath((json) => sql`coalesce(${json} in ('true'::jsonb, '1'::jsonb), false)`, scalarType('boolean')),
  ),
  scalar(
    'JSONExtractRaw(any, any...): string',
    'The JSON at a path as a string.',
    withPath(rawJson, scalarType('string')),
  ),
  scalar(
    'JSONExtractArrayRaw(any, any...): array(string)',
    'The items of an array as JSON strings.',
    withPath(itemsRaw, arrayOf(scalarType('string'))),
  ),
  scalar(
    'JSONExtractKeys(any, any...): array(string)',
    'The keys of an object.',
    withPath((json) => objectEntries(json, sql`to_jsonb(entry.key)`), arrayOf(scalarType('string'))),
  ),
  scalar(
    'JSONExtractKeysAndValuesRaw(any, any...): array(tuple)',
    'Keys and JSON strings of the fields of an object.',
    withPath(
      (json) => objectEntries(json, sql`jsonb_build_array(entry.key, ${compactText(sql`entry.value`)})`),
      arrayOf(tupleOf([scalarType('string'), scalarType('string')])),
    ),
  ),
  scalar(
    'JSONExtractKeysAndValues(any, any, any...): array(tuple)',
    'Keys and values of the fields of an object that the type given last can hold.',
    keysAndValues,
  ),
  scalar('JSON_VALUE(any, string): string', 'The value at an SQL/JSON path.', jsonValue),
  scalar('isValidJSON(string): boolean', 'Whether a string is JSON.', (site) => ({
    sql: computeOnce([argument(site, 0)], (jsonAsText = sql``) => isJson(jsonAsText)),
    type: scalarType('boolean', argument(site, 0).type.nullable),
  })),
  scalar(
    'JSONArrayLength(any): integer',
    'Number of items of an array, or null.',
    withPath(
      (json) => sql`(case when ${typeOf(json)} = 'array' then jsonb_array_length(${json})::int8 end)`,
      scalarType('integer', true),
    ),
  ),
];
