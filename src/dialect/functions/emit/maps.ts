import { coerce, unify } from '../../compile/coerce.ts';
import { argument, type Emitter, argumentNode, argumentSql } from '../../compile/functions/call_site.ts';
import { toJsonItem } from '../../compile/json_values.ts';
import { toStringSql } from '../../compile/to_string.ts';
import { commaList, sql } from '../../sql.ts';
import { arrayOf, mapOf, scalar, withNull } from '../../types.ts';
import { itemTypeOf, unnestWithIndex } from './array_items.ts';

/** Keys are converted to strings. */
const map: Emitter = (site) => {
  if (site.values.length % 2 === 1)
    throw site.statement.error(`Function '${site.name}' expects pairs of a key and a value.`, site.node);
  if (site.values.length === 0) return { sql: sql`'{}'::jsonb`, type: mapOf(scalar('null', true)) };
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
  return { sql: sql`jsonb_build_object(${commaList(parts)})`, type: mapOf(type) };
};

const fromArrays: Emitter = (site) => {
  const [keys, values] = [argument(site, 0), argument(site, 1)];
  return {
    sql: sql`(select coalesce(jsonb_object_agg(each.v #>> '{}', coalesce(${values.sql} -> (each.at - 1)::int4, 'null'::jsonb)) filter (where each.v <> 'null'::jsonb), '{}'::jsonb) from ${unnestWithIndex(keys.sql)})`,
    type: mapOf(itemTypeOf(values)),
  };
};

export const mapEmitters = {
  map,
  mapFromArrays: fromArrays,
  mapKeys: (site) => ({
    sql: sql`(select coalesce(jsonb_agg(entry.key), '[]'::jsonb) from jsonb_each(${argumentSql(site, 0)}) as entry)`,
    type: arrayOf(scalar('string')),
  }),
  mapValues: (site) => {
    const { type } = argument(site, 0);
    return {
      sql: sql`(select coalesce(jsonb_agg(entry.value), '[]'::jsonb) from jsonb_each(${argumentSql(site, 0)}) as entry)`,
      type: arrayOf(type.kind === 'map' ? type.value : scalar('null', true)),
    };
  },
  mapContains: (site) => ({
    sql: sql`jsonb_exists(${argumentSql(site, 0)}, ${toStringSql(argument(site, 1), site.statement)})`,
    type: scalar('boolean'),
  }),
} satisfies Readonly<Record<string, Emitter>>;
