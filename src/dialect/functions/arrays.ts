import {
  coerce,
  defaultOf,
  fromJson,
  itemTypeOf,
  toJsonItem,
  unify,
  unnestWithIndex,
} from '../compile/expressions/coerce.ts';
import { firstReading } from '../compile/expressions/readings.ts';
import { computeSqlOnce } from '../compile/compiler.ts';
import { jsonArray } from '../many_arguments.ts';
import { derive, type Value } from '../resolve/value.ts';
import { commaList, joinSql, rawSql, sql, type Sql } from '../sql.ts';
import {
  arrayOf,
  commonType,
  isNumber,
  nameOfType,
  scalarType,
  tupleOf,
  type Type,
  withNull,
} from '../types.ts';
import {
  constantNumber,
  formattedText,
  itemsOfRange,
  maxItems,
  withMaxSize,
  argument,
  argumentError,
  argumentNode,
  argumentSql,
  byCompiler,
  type CallSite,
  type Emitter,
  type FunctionDefinition,
  scalar,
} from './function_definition.ts';

const boolean = scalarType('boolean');

/** Items as jsonb in their common type, so that equal items compare equal. */
function jsonItems(
  site: CallSite,
  values: readonly Value[],
): { readonly type: Type; readonly items: readonly Sql[] } {
  const { type, fragments } = unify(
    values,
    values.map(() => site.node),
    site.statement,
    `The items of '${site.name}'`,
  );
  return { type, items: fragments.map((item) => toJsonItem(item, withNull(type))) };
}

/** The value as jsonb, in the form of the array's items. */
function jsonValueOf(site: CallSite, index: number): Sql {
  const value = argument(site, index);
  const item = itemTypeOf(argument(site, index === 0 ? 1 : 0));
  const json = firstReading([value], site.statement, ([read = value]) => {
    const common = commonType(read.type, item);
    return common && toJsonItem(coerce(read, common, site.statement), withNull(common));
  });
  if (json !== null) return json;
  throw argumentError(
    site,
    index,
    `${nameOfType(argument(site, 0).type)} cannot contain ${nameOfType(value.type)}.`,
  );
}

const array: Emitter = (site) => {
  const { type, items } = jsonItems(site, site.values);
  return { sql: jsonArray(items), type: arrayOf(type) };
};

const range: Emitter = (site) => {
  const [first, second, step] = [
    argumentSql(site, 0),
    site.values[1]?.sql,
    site.values[2] === undefined
      ? sql`1::int8`
      : sql`least(greatest(${site.values[2].sql}, -1000000000), 1000000000)`,
  ];
  const bounded = (bound: Sql): Sql => sql`least(greatest(${bound}, -1000000000000000), 1000000000000000)`;
  const maxSteps = rawSql(String(maxItems - 1));
  const [from, to] =
    second === undefined ? [sql`0::int8`, bounded(first)] : [bounded(first), bounded(second)];
  return {
    sql: sql`(select coalesce(jsonb_agg(counted.n order by counted.at), '[]'::jsonb) from generate_series(${from},
      case when ${first} is null or ${second ?? first} is null then null when ${step} > 0 then least(${to} - 1, ${from} + ${maxSteps} * ${step}) else greatest(${to} + 1, ${from} + ${maxSteps} * ${step}) end,
      nullif(${step}, 0)) with ordinality as counted(n, at))`,
    type: arrayOf(scalarType('integer')),
  };
};

/** Selects from the items equal to a value. jsonb compares numbers by value. */
const matchingItems = (site: CallSite, select: Sql): Sql =>
  sql`(select ${select} from ${unnestWithIndex(argument(site, 0).sql)} where each.v = ${jsonValueOf(site, 1)})`;

const has: Emitter = (site) => ({
  sql: sql`coalesce(${matchingItems(site, sql`bool_or(true)`)}, false)`,
  type: boolean,
});

const containsItems =
  (all: boolean): Emitter =>
  (site) => {
    const [first, second] = [argument(site, 0), argument(site, 1)];
    const found = sql`exists (select from jsonb_array_elements(${first.sql}) as inside where inside.value = each.v)`;
    const from = unnestWithIndex(second.sql);
    return {
      sql: all
        ? sql`(not exists (select from ${from} where not ${found}))`
        : sql`exists (select from ${from} where ${found})`,
      type: boolean,
    };
  };

const concatenated: Emitter = (site) => {
  const types = site.values.map(({ type }) => type);
  let joined: Type | null = types[0] ?? null;
  for (const type of types) joined = joined === null ? null : commonType(joined, type);
  if (joined === null)
    throw site.statement.error(
      `The arrays of '${site.name}' have no common type: ${types.map((type) => nameOfType(type)).join(', ')}.`,
      site.node,
    );
  return {
    sql: sql`(${joinSql(
      site.values.map(({ sql: value }) => value),
      ' || ',
    )})`,
    type: joined,
  };
};

const element: Emitter = (site) => {
  const list = argument(site, 0);
  const at = argument(site, 1);
  if (at.constant === 0n)
    throw argumentError(site, 1, 'SQL indexes start from one, not from zero. E.g: array[1]');
  const item = itemTypeOf(list);
  const bounded = sql`least(greatest(${at.sql}, -1000000000), 1000000000)`;
  const index = sql`(case when ${at.sql} is null then null when ${at.sql} > 0 then ${bounded} - 1 else ${bounded} end)::int4`;
  const value = fromJson(sql`(${list.sql} -> ${index})`, sql`(${list.sql} ->> ${index})`, item);
  const found = item.nullable ? value : sql`coalesce(${value}, ${defaultOf(item)})`;
  if (!at.type.nullable) return { sql: found, type: item };
  return { sql: sql`(case when ${at.sql} is not null then ${found} end)`, type: withNull(item) };
};

/** Distinct items with the index of their first occurrence. */
const unique = (from: Sql): Sql =>
  sql`(select distinct on (each.v) each.v, each.at from ${from} order by each.v, each.at)`;

const distinct: Emitter = (site) => ({
  sql: sql`(select coalesce(jsonb_agg(one.v order by one.at) filter (where one.v <> 'null'::jsonb), '[]'::jsonb) from ${unique(unnestWithIndex(argumentSql(site, 0)))} as one)`,
  type: argument(site, 0).type,
});

const uniq: Emitter = (site) => {
  const [first, ...others] = site.values;
  if (first === undefined || others.length === 0) {
    return {
      sql: sql`(select count(distinct each.v) from ${unnestWithIndex(argumentSql(site, 0))})`,
      type: scalarType('integer'),
    };
  }
  const rows = sql`jsonb_array_elements(${others[0]?.sql ?? sql``}) with ordinality as other(v, at)`;
  if (others.length > 1)
    throw site.statement.error(`Function '${site.name}' takes at most two arrays.`, site.node);
  return {
    sql: sql`(select count(distinct (each.v, other.v)) from ${unnestWithIndex(first.sql)} join ${rows} on other.at = each.at)`,
    type: scalarType('integer'),
  };
};

const difference: Emitter = (site) => {
  const item = itemTypeOf(argument(site, 0));
  if (!isNumber(item) && item.kind !== 'null')
    throw argumentError(site, 0, `Expected numbers, found ${nameOfType(item)}.`);
  const number = sql`(each.v #>> '{}')::numeric`;
  return {
    sql: sql`(select coalesce(jsonb_agg(run.v order by run.at), '[]'::jsonb) from (select coalesce(${number} - lag(${number}) over (order by each.at), 0) as v, each.at from ${unnestWithIndex(argumentSql(site, 0))}) as run)`,
    type: argument(site, 0).type,
  };
};

const intersect: Emitter = (site) => {
  const [first, ...others] = site.values;
  if (first === undefined) throw new Error('At least one array.');
  const inAll = others.map(
    (other) =>
      sql` and exists (select from jsonb_array_elements(${other.sql}) as inside where inside.value = one.v)`,
  );
  return {
    sql: sql`(select coalesce(jsonb_agg(one.v order by one.at), '[]'::jsonb) from ${unique(unnestWithIndex(first.sql))} as one where true${joinSql(inAll, '')})`,
    type: first.type,
  };
};

/** Flattens nested arrays completely, as deep as their type says. */
const flatten: Emitter = (site) => {
  let { sql: flattened, type } = argument(site, 0);
  while (type.kind === 'array' && type.item.kind === 'array') {
    flattened = sql`(select coalesce(jsonb_agg(inside.v order by each.at, inside.at), '[]'::jsonb) from ${unnestWithIndex(flattened)}, jsonb_array_elements(each.v) with ordinality as inside(v, at))`;
    type = type.item;
  }
  return { sql: flattened, type };
};

const compact: Emitter = (site) => ({
  sql: sql`(select coalesce(jsonb_agg(run.v order by run.at) filter (where run.v is distinct from run.before), '[]'::jsonb) from
    (select each.v, each.at, lag(each.v) over (order by each.at) as before from ${unnestWithIndex(argumentSql(site, 0))}) as run)`,
  type: argument(site, 0).type,
});

const zip: Emitter = (site) => {
  const [first, ...others] = site.values;
  if (first === undefined) throw new Error('At least one array.');
  const parts = others.map(({ sql: other }) => sql`coalesce(${other} -> (each.at - 1)::int4, 'null'::jsonb)`);
  return {
    sql: sql`(select coalesce(jsonb_agg(${jsonArray([sql`each.v`, ...parts])} order by each.at), '[]'::jsonb) from ${unnestWithIndex(first.sql)})`,
    type: arrayOf(tupleOf(site.values.map(itemTypeOf))),
  };
};

const withConstant: Emitter = (site) => {
  const value = argument(site, 1);
  return {
    sql: sql`(select coalesce(jsonb_agg(${toJsonItem(value.sql, value.type)} order by copy.n), '[]'::jsonb) from generate_series(1, least(coalesce(${argumentSql(site, 0)}, 0), ${rawSql(String(maxItems))})) as copy(n))`,
    type: arrayOf(value.type),
  };
};

const stringConcat: Emitter = (site) => {
  const list = argument(site, 0);
  const item = itemTypeOf(list);
  const value = derive('item', [list], item, fromJson(sql`each.v`, sql`(each.v #>> '{}')`, item));
  return {
    sql: sql`(select coalesce(string_agg(${formattedText(site, value)}, ${site.values[1]?.sql ?? sql`''::text`} order by each.at), '') from ${unnestWithIndex(list.sql)})`,
    type: scalarType('string'),
  };
};

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

/** Fills or cuts at the end; at the start if the size is negative. */
const resize: Emitter = (site) => {
  const [list, size] = [argument(site, 0), argument(site, 1)];
  const other = site.values[2];
  const item = itemTypeOf(list);
  const filling = other === undefined ? toJsonItem(defaultOf(item), item) : toJsonItem(other.sql, other.type);
  const length = sql`jsonb_array_length(${list.sql})`;
  const bound = rawSql(String(maxItems));
  return {
    sql: computeSqlOnce(
      [sql`least(greatest(coalesce(${size.sql}, 0), -${bound}), ${bound})::int4`, length],
      (n = sql``, found = sql``) =>
        sql`(select coalesce(jsonb_agg(coalesce(case when made.at >= 0 then ${list.sql} -> made.at end, ${filling}) order by made.at), '[]'::jsonb)
        from generate_series(case when ${n} < 0 then ${found} + ${n} else 0 end, case when ${n} < 0 then ${found} else ${n} end - 1) as made(at))`,
    ),
    type: list.type,
  };
};

/** Moves items around the end. @param sign 1 to the left, -1 to the right */
const rotate =
  (sign: 1 | -1): Emitter =>
  (site) => {
    const size = sql`nullif(jsonb_array_length(${argumentSql(site, 0)}), 0)`;
    const steps = sql`(${argumentSql(site, 1)} % ${size}) * ${rawSql(String(sign))}`;
    return {
      sql: sql`(select coalesce(jsonb_agg(each.v order by (((each.at - 1 - ${steps}) % ${size}) + ${size}) % ${size}), '[]'::jsonb) from ${unnestWithIndex(argumentSql(site, 0))})`,
      type: argument(site, 0).type,
    };
  };

const enumerateUniq: Emitter = (site) => {
  const [first, ...others] = site.values;
  const keys = [sql`each.v`, ...others.map(({ sql: other }) => sql`${other} -> (each.at - 1)::int4`)];
  return {
    sql: sql`(select coalesce(jsonb_agg(run.n order by run.at), '[]'::jsonb) from (select row_number() over (partition by ${commaList(keys)} order by each.at) as n, each.at
      from ${unnestWithIndex(first?.sql ?? sql``)}) as run)`,
    type: arrayOf(scalarType('integer')),
  };
};

/** Functions of arrays. */
export const arrayFunctions: readonly FunctionDefinition[] = [
  scalar('array(T...): array(T)', 'An array of the arguments.', array),
  scalar(
    'range(integer, integer?, integer?): array(integer)',
    'Integers from a start up to, but not including, an end.',
    withMaxSize(maxItems, 'items', itemsOfRange, range),
    { ranges: [{ index: 0, min: 0, argumentCount: 1 }] },
  ),
  scalar('has(array(T), T): boolean', 'Whether an array contains a value.', has),
  scalar(
    'hasAll(array(T), array(T)): boolean',
    'Whether an array contains all values of another.',
    containsItems(true),
  ),
  scalar(
    'hasAny(array(T), array(T)): boolean',
    'Whether an array contains any value of another.',
    containsItems(false),
  ),
  scalar('indexOf(array(T), T): integer', 'The index of a value, from 1; 0 if not found.', (site) => ({
    sql: sql`coalesce(${matchingItems(site, sql`min(each.at)`)}, 0)`,
    type: scalarType('integer'),
  })),
  scalar('arrayConcat(array(T), array(T)...): array(T)', 'The arrays concatenated.', concatenated),
  scalar('arrayElement(array(T), integer): T', 'The item at an index; from the end if negative.', element),
  scalar('arrayPushBack(array(T), T): array(T)', 'The array with an item appended.', push(false)),
  scalar('arrayPushFront(array(T), T): array(T)', 'The array with an item prepended.', push(true)),
  scalar('arrayPopBack(array(T)): array(T)', 'The array without its last item.', (site) =>
    filteredItems(site, sql`each.at < jsonb_array_length(${argumentSql(site, 0)})`),
  ),
  scalar('arrayPopFront(array(T)): array(T)', 'The array without its first item.', (site) =>
    filteredItems(site, sql`each.at > 1`),
  ),
  scalar('arraySlice(array(T), integer, integer?): array(T)', 'A part of an array.', slice),
  scalar('arrayResize(array(T), integer, T?): array(T)', 'The array cut or filled up to a size.', resize),
  scalar(
    'arrayRotateLeft(array(T), integer): array(T)',
    'The array with items moved from its start to its end.',
    rotate(1),
  ),
  scalar(
    'arrayRotateRight(array(T), integer): array(T)',
    'The array with items moved from its end to its start.',
    rotate(-1),
  ),
  scalar(
    'arrayEnumerateUniq(array(any), array(any)...): array(integer)',
    'For each item, how many equal ones there are up to it.',
    enumerateUniq,
  ),
  scalar(
    'arrayReduce(string, array(any), array(any)...): any',
    'An aggregate over the items of arrays.',
    byCompiler,
  ),
  scalar('arrayReverse(array(T)): array(T)', 'The array in reverse order.', (site) =>
    filteredItems(site, sql`true`, sql` desc`),
  ),
  scalar('arrayUniq(array(any), array(any)...): integer', 'Number of distinct items.', uniq),
  scalar('arrayDistinct(array(T)): array(T)', 'The distinct items of an array.', distinct),
  scalar('arrayJoin(array(T)): T', 'A row for each item.', byCompiler),
  scalar('countEqual(array(T), T): integer', 'Number of items equal to a value.', (site) => ({
    sql: matchingItems(site, sql`count(*)`),
    type: scalarType('integer'),
  })),
  scalar(
    'arrayDifference(array(number)): array(number)',
    'The differences between successive items.',
    difference,
  ),
  scalar('arrayIntersect(array(T), array(T)...): array(T)', 'The items common to all arrays.', intersect),
  scalar('arrayFlatten(array(any)): array(any)', 'The items of nested arrays.', flatten),
  scalar('arrayCompact(array(T)): array(T)', 'The array without consecutive duplicates.', compact),
  scalar('arrayZip(array(any), array(any)...): array(tuple)', 'Tuples of the items at the same index.', zip),
  scalar(
    'arrayWithConstant(integer, T): array(T)',
    'An array that repeats a value.',
    withMaxSize(maxItems, 'items', (site) => constantNumber(site, 0), withConstant),
    { ranges: [{ index: 0, min: 0 }] },
  ),
  scalar('arrayEnumerate(array(any)): array(integer)', 'The indexes of an array.', (site) => ({
    sql: sql`(select coalesce(jsonb_agg(each.at order by each.at), '[]'::jsonb) from ${unnestWithIndex(argumentSql(site, 0))})`,
    type: arrayOf(scalarType('integer')),
  })),
  scalar('arrayStringConcat(array(any), string?): string', 'The items as one string.', stringConcat),
];
