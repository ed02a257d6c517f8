import {
  coerce,
  fromJson,
  itemTypeOf,
  toJsonItem,
  toStringSql,
  unify,
  unnestWithIndex,
} from '../compile/expressions/coerce.ts';
import { jsonArray, jsonObject } from '../many_arguments.ts';
import { bind, sql } from '../sql.ts';
import { arrayOf, commonType, mapOf, nameOfType, scalarType, tupleOf, withNull } from '../types.ts';
import {
  argument,
  argumentError,
  argumentNode,
  argumentSql,
  type Emitter,
  type FunctionDefinition,
  scalar,
  unsupportedFunction,
} from './function_definition.ts';

const tuple: Emitter = (site) => ({
  sql: jsonArray(site.values.map((value) => toJsonItem(value.sql, value.type))),
  type: tupleOf(site.values.map(({ type }) => type)),
});

/**
 * What the reference product returns where its page draws a part: its name, and its attributes by name. Programs read the
 * session id there.
 */
const tag =
  (name: string, attributes: readonly string[]): Emitter =>
  (site) => {
    const texts = ['__hx_tag', name].map((text) => ({ type: scalarType('string'), sql: bind(text, 'text') }));
    const parts = site.values.flatMap((value, index) => [
      { type: scalarType('string'), sql: bind(attributes[index] ?? '', 'text') },
      value,
    ]);
    const items = [...texts, ...parts];
    return {
      sql: jsonArray(items.map((item) => toJsonItem(item.sql, item.type))),
      type: tupleOf(items.map(({ type }) => type)),
    };
  };

const tupleElement: Emitter = (site) => {
  const value = argument(site, 0);
  const { constant } = argument(site, 1);
  const items = value.type.kind === 'tuple' ? value.type.items : [];
  const names = value.type.kind === 'tuple' ? value.type.names : [];
  const index = typeof constant === 'bigint' ? Number(constant) - 1 : names.indexOf(String(constant));
  const type = items[index];
  if (type === undefined) {
    const other = site.values[2];
    if (other !== undefined) return { sql: other.sql, type: other.type };
    throw argumentError(site, 1, `${nameOfType(value.type)} has no element ${String(constant)}.`);
  }
  const at = bind(String(index), 'int4');
  return { sql: fromJson(sql`(${value.sql} -> ${at})`, sql`(${value.sql} ->> ${at})`, type), type };
};

/** Keys are converted to strings. */
const map: Emitter = (site) => {
  if (site.values.length % 2 === 1)
    throw site.statement.error(`Function '${site.name}' expects pairs of a key and a value.`, site.node);
  if (site.values.length === 0) return { sql: sql`'{}'::jsonb`, type: mapOf(scalarType('null', true)) };
  const values = site.values.filter((_, index) => index % 2 === 1);
  const { type } = unify(
    values,
    values.map((_, index) => argumentNode(site, index * 2 + 1)),
    site.statement,
    'The values of a map',
  );
  const parts = site.values.map((value, index) =>
    index % 2 === 0
      ? toStringSql(value, site.statement)
      : toJsonItem(coerce(value, type, site.statement), withNull(type)),
  );
  return { sql: jsonObject(parts), type: mapOf(type) };
};

const fromArrays: Emitter = (site) => {
  const [keys, values] = [argument(site, 0), argument(site, 1)];
  return {
    sql: sql`(select coalesce(jsonb_object_agg(each.v #>> '{}', coalesce(${values.sql} -> (each.at - 1)::int4, 'null'::jsonb)) filter (where each.v <> 'null'::jsonb), '{}'::jsonb) from ${unnestWithIndex(keys.sql)})`,
    type: mapOf(itemTypeOf(values)),
  };
};

/** Functions of tuples and maps. */
export const tupleAndMapFunctions: readonly FunctionDefinition[] = [
  scalar('tuple(any...): tuple', 'A tuple of the arguments.', tuple),
  scalar(
    'recordingButton(string, any?): tuple',
    "['__hx_tag', 'RecordingButton', 'sessionId', id], as the reference product answers.",
    tag('RecordingButton', ['sessionId', 'recordingStatus']),
  ),
  scalar(
    'sparkline(array(any), array(any)?): tuple',
    "['__hx_tag', 'Sparkline', 'data', array], as the reference product answers.",
    tag('Sparkline', ['data', 'labels']),
  ),
  scalar('tupleElement(tuple, any, any?): any', 'An element of a tuple.', tupleElement),
  unsupportedFunction('untuple', 'The elements of a tuple as columns.', 'Select the elements: t.1, t.2.'),
  scalar('map(any...): map', 'A map of keys and values.', map),
  scalar(
    'mapFromArrays(array(any), array(any)): map',
    'A map from an array of keys and an array of values.',
    fromArrays,
  ),
  scalar('mapKeys(map): array(any)', 'The keys of a map.', (site) => ({
    sql: sql`(select coalesce(jsonb_agg(entry.key), '[]'::jsonb) from jsonb_each(${argumentSql(site, 0)}) as entry)`,
    type: arrayOf(scalarType('string')),
  })),
  scalar('mapValues(map): array(any)', 'The values of a map.', (site) => {
    const { type } = argument(site, 0);
    return {
      sql: sql`(select coalesce(jsonb_agg(entry.value), '[]'::jsonb) from jsonb_each(${argumentSql(site, 0)}) as entry)`,
      type: arrayOf(type.kind === 'map' ? type.value : scalarType('null', true)),
    };
  }),
  scalar('mapUpdate(map, map): map', 'The first map with the entries of the second.', (site) => {
    const [first, second] = [argument(site, 0), argument(site, 1)];
    const type = commonType(first.type, second.type);
    if (type === null)
      throw argumentError(
        site,
        1,
        `The maps have no common type: ${nameOfType(first.type)}, ${nameOfType(second.type)}.`,
      );
    return { sql: sql`(${first.sql} || ${second.sql})`, type };
  }),
  scalar('mapContains(map, any): boolean', 'Whether a map contains a key.', (site) => ({
    sql: sql`jsonb_exists(${argumentSql(site, 0)}, ${toStringSql(argument(site, 1), site.statement)})`,
    type: scalarType('boolean'),
  })),
];
