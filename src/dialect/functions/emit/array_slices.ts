import { coerce, unify } from '../../compile/coerce.ts';
import {
  argument,
  type CallSite,
  type Emitter,
  argumentNode,
  argumentSql,
} from '../../compile/functions/call_site.ts';
import { toJsonItem } from '../../compile/json_values.ts';
import { derive, type Value } from '../../resolve/value.ts';
import { sql, type Sql } from '../../sql.ts';
import { arrayOf, withNull } from '../../types.ts';
import { itemTypeOf, unnestWithIndex } from './array_items.ts';

const filteredItems = (site: CallSite, where: Sql, order: Sql = sql``): ReturnType<Emitter> => ({
  sql: sql`(select coalesce(jsonb_agg(each.v order by each.at${order}), '[]'::jsonb) from ${unnestWithIndex(argumentSql(site, 0))} where ${where})`,
  type: argument(site, 0).type,
});

const push =
  (front: boolean): Emitter =>
  (site) => {
    const [list, value] = [argument(site, 0), argument(site, 1)];
    const item = derive('item', [list], itemTypeOf(list), sql`null`);
    const { type } = unify(
      [item, value],
      [argumentNode(site, 0), argumentNode(site, 1)],
      site.statement,
      `The items of '${site.name}'`,
    );
    const added = sql`jsonb_build_array(${toJsonItem(coerce(value, type, site.statement), withNull(type))})`;
    return {
      sql: front ? sql`(${added} || ${list.sql})` : sql`(${list.sql} || ${added})`,
      type: arrayOf(type),
    };
  };

/** A slice from an index, counted from the end if negative. A negative length excludes that many items at the end. */
const slice: Emitter = (site) => {
  const bounded = (value: Value): Value => ({
    ...value,
    sql: sql`(case when ${value.sql} is not null then least(greatest(${value.sql}, -1000000000), 1000000000) end)`,
  });
  const [list, from] = [argument(site, 0), bounded(argument(site, 1))];
  const length = site.values[2] === undefined ? undefined : bounded(site.values[2]);
  const size = sql`jsonb_array_length(${list.sql})`;
  const start = sql`(case when ${from.sql} > 0 then ${from.sql} else ${size} + ${from.sql} + 1 end)`;
  if (length === undefined || length.type.kind === 'null')
    return filteredItems(site, sql`each.at >= ${start}`);
  const end = sql`(case when ${length.sql} >= 0 then ${start} + ${length.sql} else ${size} + ${length.sql} + 1 end)`;
  return filteredItems(site, sql`each.at >= ${start} and each.at < ${end}`);
};

/** Slices of arrays, and arrays with added items. */
export const arraySliceEmitters = {
  arrayPushBack: push(false),
  arrayPushFront: push(true),
  arrayPopBack: (site) => filteredItems(site, sql`each.at < jsonb_array_length(${argumentSql(site, 0)})`),
  arrayPopFront: (site) => filteredItems(site, sql`each.at > 1`),
  arraySlice: slice,
  arrayReverse: (site) => filteredItems(site, sql`true`, sql` desc`),
} satisfies Readonly<Record<string, Emitter>>;
