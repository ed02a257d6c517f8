import { derive, type Value } from '../../resolve/value.ts';
import { commaList, joinSql, ownText, sql, type Sql } from '../../sql.ts';
import {
  arrayOf,
  commonTypeOf,
  isComposite,
  mapOf,
  nameOfType,
  scalar,
  tupleOf,
  type Type,
  withNull,
} from '../../types.ts';
import { coerce } from '../coerce.ts';
import { fromJson, toJsonItem } from '../json_values.ts';
import { partOf } from '../members.ts';
import { toText } from '../to_text.ts';
import { argument, type CallSite, type Emitter, nodeAt, optionalPiece, piece } from './site.ts';

const itemOf = (site: CallSite, place: number): Type => {
  const { type } = argument(site, place);
  return type.kind === 'array' ? type.item : scalar('null', true);
};

/** A value as it stands in an array. */
const asItem = (site: CallSite, place: number): Sql => {
  const { sql: value, type } = argument(site, place);
  return toJsonItem(value, type);
};

const rows = (array: Sql): Sql => sql`jsonb_array_elements(${array}) with ordinality as i(v, at)`;
const collect = (value: Sql, from: Sql, order: Sql = sql`i.at`): Sql =>
  sql`(select coalesce(jsonb_agg(${value} order by ${order}), '[]'::jsonb) from ${from})`;

const array: Emitter = (site) => {
  const item = site.gives.kind === 'array' ? commonTypeOf(site.values.map(({ type }) => type)) : null;
  const items = site.values.map((value) => toJsonItem(value.sql, value.type));
  return { sql: sql`jsonb_build_array(${commaList(items)})`, type: arrayOf(item ?? scalar('null', true)) };
};

/** Whole numbers from one up to before another. */
const range: Emitter = (site) => {
  const [first, second] = [piece(site, 0), optionalPiece(site, 1)];
  const [from, to] = second === undefined ? [sql`0`, first] : [first, second];
  const step = optionalPiece(site, 2) ?? sql`1`;
  const series = sql`generate_series((${from})::int8, (${to})::int8 - sign(${step})::int8, (${step})::int8)`;
  return {
    sql: sql`(select coalesce(jsonb_agg(s.v), '[]'::jsonb) from ${series} as s(v))`,
    type: arrayOf(scalar('integer')),
  };
};

const has: Emitter = (site) => ({
  sql: sql`exists (select from ${rows(piece(site, 0))} where i.v = ${asItem(site, 1)})`,
  type: scalar('boolean'),
});

const contained = (inner: Sql, outer: Sql): Sql =>
  sql`exists (select from jsonb_array_elements(${outer}) as o(v) where o.v = ${inner})`;

const distinctOf = (arrays: readonly Sql[]): Sql => {
  const [first, ...others] = arrays;
  const conditions = others.map((other) => contained(sql`i.v`, other));
  const where = conditions.length === 0 ? sql`` : sql` where ${joinSql(conditions, ' and ')}`;
  return sql`(select coalesce(jsonb_agg(d.v order by d.at), '[]'::jsonb) from (select i.v, min(i.at) as at
    from ${rows(first ?? sql`'[]'::jsonb`)}${where} group by i.v) as d)`;
};

/** Negative places count from the end. */
const slice: Emitter = (site) => {
  const [list, offset, count] = [piece(site, 0), piece(site, 1), optionalPiece(site, 2)];
  const length = sql`jsonb_array_length(${list})`;
  const from = sql`(case when ${offset} < 0 then ${length} + ${offset} + 1 else ${offset} end)`;
  const until =
    count === undefined
      ? sql``
      : sql` and i.at < (case when ${count} < 0 then ${length} + ${count} + 1 else ${from} + ${count} end)`;
  return {
    sql: collect(sql`i.v`, sql`${rows(list)} where i.at >= ${from}${until}`),
    type: argument(site, 0).type,
  };
};

const same =
  (make: (array: Sql) => Sql): Emitter =>
  (site) => ({
    sql: make(piece(site, 0)),
    type: argument(site, 0).type,
  });

const differences: Emitter = (site) => ({
  sql: sql`(select coalesce(jsonb_agg(d.v order by d.at), '[]'::jsonb) from (select i.at, coalesce((i.v #>> '{}')::numeric
    - lag((i.v #>> '{}')::numeric) over (order by i.at), 0) as v from ${rows(piece(site, 0))}) as d)`,
  type: arrayOf(withNull(itemOf(site, 0), false)),
});

const compact = (list: Sql): Sql =>
  sql`(select coalesce(jsonb_agg(d.v order by d.at), '[]'::jsonb) from (select i.at, i.v,
    lag(i.v) over (order by i.at) is distinct from i.v as is_new from ${rows(list)}) as d where d.is_new)`;

const zip: Emitter = (site) => {
  const names = site.values.map((_, index) => ownText(`z${index}`));
  const lists = commaList(site.values.map(({ sql: list }) => sql`jsonb_array_elements(${list})`));
  const columns = commaList([...names.map((name) => name), sql`at`]);
  const items = commaList(names.map((name) => sql`coalesce(z.${name}, 'null'::jsonb)`));
  return {
    sql: sql`(select coalesce(jsonb_agg(jsonb_build_array(${items}) order by z.at), '[]'::jsonb) from rows from (${lists}) with ordinality as z(${columns}))`,
    type: arrayOf(tupleOf(site.values.map((_, place) => itemOf(site, place)))),
  };
};

/** Items of arrays in arrays, as deep as they are. */
const flatten: Emitter = (site) => {
  let { type } = argument(site, 0);
  let list = piece(site, 0);
  for (let item = itemOf(site, 0); item.kind === 'array'; item = item.item) {
    list = sql`(select coalesce(jsonb_agg(j.v order by i.at, j.at), '[]'::jsonb) from ${rows(list)}, jsonb_array_elements(i.v) with ordinality as j(v, at))`;
    type = item;
  }
  return { sql: list, type };
};

const joined: Emitter = (site) => {
  const item = itemOf(site, 0);
  const value = derive(fromJson(sql`i.v`, sql`(i.v #>> '{}')`, item), item);
  const separator = optionalPiece(site, 1) ?? sql`''`;
  return {
    sql: sql`coalesce((select string_agg(${toText(value, site.statement)}, ${separator} order by i.at) from ${rows(piece(site, 0))}), '')`,
    type: scalar('string'),
  };
};

const tuple: Emitter = (site) => ({
  sql: sql`jsonb_build_array(${commaList(site.values.map(({ sql: value, type }) => toJsonItem(value, type)))})`,
  type: tupleOf(site.values.map(({ type }) => type)),
});

const part: Emitter = (site) => partOf(argument(site, 0), argument(site, 1), nodeAt(site, 1), site.scope);

const map: Emitter = (site) => {
  if (site.values.length % 2 === 1)
    throw site.statement.error(`Function '${site.name}' expects keys and values in turn.`, site.node);
  const values = site.values.filter((_, place) => place % 2 === 1);
  const type = commonTypeOf(values.map((value) => value.type));
  if (type === null)
    throw site.statement.error(`The values of '${site.name}' have no common type.`, site.node);
  const parts = site.values.map((value: Value, place) =>
    place % 2 === 0 ? toText(value, site.statement) : toJsonItem(coerce(value, type, site.statement), type),
  );
  return { sql: sql`jsonb_build_object(${commaList(parts)})`, type: mapOf(type) };
};

const valueOfMap = (site: CallSite): Type => {
  const { type } = argument(site, 0);
  return type.kind === 'map' ? type.value : scalar('null', true);
};

const scalarItem = (site: CallSite): Type => {
  const item = itemOf(site, 1);
  if (isComposite(item))
    throw site.statement.error(`${nameOfType(item)} cannot be a value.`, nodeAt(site, 1));
  return item;
};

export const arrayEmitters: Readonly<Record<string, Emitter>> = {
  array,
  range,
  has,
  hasAll: (site) => ({
    sql: sql`(not exists (select from ${rows(piece(site, 1))} where not ${contained(sql`i.v`, piece(site, 0))}))`,
    type: scalar('boolean'),
  }),
  hasAny: (site) => ({
    sql: sql`exists (select from ${rows(piece(site, 1))} where ${contained(sql`i.v`, piece(site, 0))})`,
    type: scalar('boolean'),
  }),
  indexOf: (site) => ({
    sql: sql`coalesce((select min(i.at) from ${rows(piece(site, 0))} where i.v = ${asItem(site, 1)}), 0)`,
    type: scalar('integer'),
  }),
  countEqual: (site) => ({
    sql: sql`(select count(*) from ${rows(piece(site, 0))} where i.v = ${asItem(site, 1)})`,
    type: scalar('integer'),
  }),
  arrayConcat: (site) => ({
    sql: sql`(${joinSql(
      site.values.map((value) => value.sql),
      ' || ',
    )})`,
    type: commonTypeOf(site.values.map(({ type }) => type)) ?? argument(site, 0).type,
  }),
  arrayElement: part,
  arrayPushBack: (site) => ({
    sql: sql`(${piece(site, 0)} || jsonb_build_array(${asItem(site, 1)}))`,
    type: arrayOf(commonTypeOf([itemOf(site, 0), argument(site, 1).type]) ?? itemOf(site, 0)),
  }),
  arrayPushFront: (site) => ({
    sql: sql`(jsonb_build_array(${asItem(site, 1)}) || ${piece(site, 0)})`,
    type: arrayOf(commonTypeOf([itemOf(site, 0), argument(site, 1).type]) ?? itemOf(site, 0)),
  }),
  arrayPopBack: same((list) => sql`(${list} - (-1))`),
  arrayPopFront: same((list) => sql`(${list} - 0)`),
  arraySlice: slice,
  arrayReverse: same((list) => collect(sql`i.v`, rows(list), sql`i.at desc`)),
  arrayDistinct: same((list) => distinctOf([list])),
  arrayIntersect: (site) => ({
    sql: distinctOf(site.values.map((value) => value.sql)),
    type: argument(site, 0).type,
  }),
  arrayUniq: (site) => ({
    sql: sql`(select count(distinct i.v) from ${rows(piece(site, 0))})`,
    type: scalar('integer'),
  }),
  arrayDifference: differences,
  arrayCompact: same(compact),
  arrayZip: zip,
  arrayFlatten: flatten,
  arrayWithConstant: (site) => ({
    sql: sql`(select coalesce(jsonb_agg(${asItem(site, 1)}), '[]'::jsonb) from generate_series(1, ${piece(site, 0)}))`,
    type: arrayOf(argument(site, 1).type),
  }),
  arrayEnumerate: (site) => ({
    sql: collect(sql`to_jsonb(i.at)`, rows(piece(site, 0))),
    type: arrayOf(scalar('integer')),
  }),
  arrayStringConcat: joined,
  tuple,
  tupleElement: part,
  map,
  mapFromArrays: (site) => ({
    sql: sql`(select coalesce(jsonb_object_agg(k.v #>> '{}', i.v), '{}'::jsonb) from ${rows(piece(site, 1))} join jsonb_array_elements(${piece(site, 0)}) with ordinality as k(v, at) on k.at = i.at)`,
    type: mapOf(scalarItem(site)),
  }),
  mapKeys: (site) => ({
    sql: sql`(select coalesce(jsonb_agg(k.v), '[]'::jsonb) from jsonb_object_keys(${piece(site, 0)}) as k(v))`,
    type: arrayOf(scalar('string')),
  }),
  mapValues: (site) => ({
    sql: sql`(select coalesce(jsonb_agg(k.v), '[]'::jsonb) from jsonb_each(${piece(site, 0)}) as k(n, v))`,
    type: arrayOf(valueOfMap(site)),
  }),
  mapContains: (site) => ({
    sql: sql`(${piece(site, 0)} ? ${toText(argument(site, 1), site.statement)})`,
    type: scalar('boolean'),
  }),
};
