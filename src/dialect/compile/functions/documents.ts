import type { Type } from '../../types.ts';
import { parseExpression } from '../../parser/parse.ts';
import { bind, joinSql, sql, type Sql } from '../../sql.ts';
import { arrayOf, scalar, tupleOf } from '../../types.ts';
import { typeOfName } from '../casts.ts';
import { defaultOf, fromJson } from '../json_values.ts';
import { castTextTo } from '../text_casts.ts';
import { argument, type CallSite, type Emitter, nodeAt, piece } from './site.ts';

/** What is read as JSON: a column, or a text, which is null where it is not JSON. */
function document(site: CallSite): Sql {
  const value = argument(site, 0);
  const { json } = value;
  if (json !== undefined) {
    const path = [json.document, ...json.keys];
    return sql`(${joinSql(path, ' -> ')})`;
  }
  if (value.type.kind === 'json' || value.type.kind === 'map' || value.type.kind === 'array')
    return sql`(${value.sql})::jsonb`;
  if (value.type.kind !== 'string' && value.type.kind !== 'null')
    throw site.statement.error(`Function '${site.name}' expects JSON or a text.`, nodeAt(site, 0));
  return sql`(case when pg_input_is_valid(${value.sql}, 'jsonb') then (${value.sql})::jsonb end)`;
}

/** The value at the path of keys and places, which are counted from one. */
function at(site: CallSite, until = site.values.length): { readonly json: Sql; readonly text: Sql } {
  const steps = site.values.slice(1, until).map((step, index) => {
    if (step.type.kind === 'string') return step.sql;
    if (step.type.kind !== 'integer')
      throw site.statement.error(
        `A path holds keys and places, found something else.`,
        nodeAt(site, index + 1),
      );
    if (typeof step.constant === 'bigint')
      return bind(String(step.constant > 0n ? step.constant - 1n : step.constant), 'int4');
    return sql`(case when ${step.sql} > 0 then ${step.sql} - 1 else ${step.sql} end)::int4`;
  });
  const base = document(site);
  const json = steps.length === 0 ? base : sql`(${joinSql([base, ...steps], ' -> ')})`;
  return { json, text: sql`(${json} #>> '{}')` };
}

const reading =
  (type: Type): Emitter =>
  (site) => {
    const { text } = at(site);
    const cast = castTextTo(text, type, site.statement);
    return { sql: sql`coalesce(${cast}, ${defaultOf(type)})`, type };
  };

const integer: Emitter = (site) => {
  const { text } = at(site);
  const number = castTextTo(text, scalar('decimal'), site.statement);
  return { sql: sql`coalesce(trunc(${number})::int8, 0)`, type: scalar('integer') };
};

const raw: Emitter = (site) => ({ sql: sql`coalesce(${at(site).json}::text, '')`, type: scalar('string') });

const when = (site: CallSite, kind: string, value: (json: Sql) => Sql): Sql => {
  const { json } = at(site);
  return sql`(case when jsonb_typeof(${json}) = ${bind(kind, 'text')} then ${value(json)} end)`;
};

const typeWords = sql`'object', 'Object', 'array', 'Array', 'string', 'String', 'boolean', 'Bool', 'null', 'Null'`;

const extract: Emitter = (site) => {
  const last = site.values.length - 1;
  const { constant } = argument(site, last);
  if (typeof constant !== 'string')
    throw site.statement.error(
      `The last argument of '${site.name}' is the name of a type.`,
      nodeAt(site, last),
    );
  const parsed = parseExpression(`CAST(NULL AS ${constant})`);
  if (parsed.kind !== 'cast')
    throw site.statement.error(`'${constant}' is not the name of a type.`, nodeAt(site, last));
  const { start, end } = nodeAt(site, last);
  const type = typeOfName(
    { ...parsed.type, start, end, name: { ...parsed.type.name, start, end } },
    site.statement,
  );
  const { json, text } = at(site, last);
  if (type.kind === 'array' || type.kind === 'tuple')
    return {
      sql: sql`coalesce(case when jsonb_typeof(${json}) = 'array' then ${json} end, '[]'::jsonb)`,
      type,
    };
  if (type.kind === 'map')
    return {
      sql: sql`coalesce(case when jsonb_typeof(${json}) = 'object' then ${json} end, '{}'::jsonb)`,
      type,
    };
  const cast = type.kind === 'json' ? fromJson(json, text, type) : castTextTo(text, type, site.statement);
  return type.nullable ? { sql: cast, type } : { sql: sql`coalesce(${cast}, ${defaultOf(type)})`, type };
};

export const documentEmitters: Readonly<Record<string, Emitter>> = {
  JSONHas: (site) => ({ sql: sql`(${at(site).json} is not null)`, type: scalar('boolean') }),
  JSONExtractString: (site) => ({
    sql: sql`coalesce(${when(site, 'string', (json) => sql`${json} #>> '{}'`)}, '')`,
    type: scalar('string'),
  }),
  JSONExtractInt: integer,
  JSONExtractUInt: integer,
  JSONExtractFloat: reading(scalar('float')),
  JSONExtractBool: reading(scalar('boolean')),
  JSONExtractRaw: raw,
  JSONExtract: extract,
  JSONLength: (site) => {
    const { json } = at(site);
    return {
      sql: sql`(case jsonb_typeof(${json}) when 'array' then jsonb_array_length(${json}) when 'object' then (select count(*) from jsonb_object_keys(${json})) else 0 end)::int8`,
      type: scalar('integer'),
    };
  },
  JSONArrayLength: (site) => ({
    sql: sql`(${when(site, 'array', (json) => sql`jsonb_array_length(${json})`)})::int8`,
    type: scalar('integer', true),
  }),
  JSONType: (site) => {
    const { json } = at(site);
    const kind = sql`jsonb_typeof(${json})`;
    return {
      sql: sql`coalesce(case ${kind} when 'number' then case when ${json}::text ~ '[.eE]' then 'Double' else 'Int64' end
        else (jsonb_build_object(${typeWords}) ->> ${kind}) end, 'Null')`,
      type: scalar('string'),
    };
  },
  JSONExtractArrayRaw: (site) => ({
    sql: sql`coalesce((select jsonb_agg(to_jsonb(i.v::text) order by i.at) from jsonb_array_elements(${when(site, 'array', (json) => json)}) with ordinality as i(v, at)), '[]'::jsonb)`,
    type: arrayOf(scalar('string')),
  }),
  JSONExtractKeys: (site) => ({
    sql: sql`coalesce((select jsonb_agg(k.v) from jsonb_object_keys(${when(site, 'object', (json) => json)}) as k(v)), '[]'::jsonb)`,
    type: arrayOf(scalar('string')),
  }),
  JSONExtractKeysAndValuesRaw: (site) => ({
    sql: sql`coalesce((select jsonb_agg(jsonb_build_array(k.n, k.v::text)) from jsonb_each(${when(site, 'object', (json) => json)}) as k(n, v)), '[]'::jsonb)`,
    type: arrayOf(tupleOf([scalar('string'), scalar('string')])),
  }),
  JSON_VALUE: (site) => ({
    sql: sql`coalesce(jsonb_path_query_first(${document(site)}, (${piece(site, 1)})::jsonpath, '{}', true) #>> '{}', '')`,
    type: scalar('string'),
  }),
};
