import {
  type AggregateEmitter,
  type AggregateCallSite,
  argument,
  argumentNode,
  argumentSql,
} from '../../compile/functions/call_site.ts';
import { defaultOf, fromJson, toJson } from '../../compile/json_values.ts';
import { bind, commaList, rawSql, sql, type Sql } from '../../sql.ts';
import { arrayOf, isNumber, scalar, withNull } from '../../types.ts';

/** All non-null values as a jsonb array. */
function listOf(site: AggregateCallSite, value: Sql, order: Sql = site.orderBy): Sql {
  const conditions = site.values
    .filter(({ type }) => type.nullable)
    .map((one) => sql`${one.sql} is not null`);
  return sql`coalesce(${site.over(sql`jsonb_agg(${value}${order})`, ...conditions)}, '[]'::jsonb)`;
}

function rejectWindow(site: AggregateCallSite): void {
  if (site.isWindow) throw site.statement.error(`Function '${site.name}' does not support OVER.`, site.node);
}

/** The value at a level of the sorted values; between two values, the larger one. */
const quantileExact: AggregateEmitter = (site) => {
  rejectWindow(site);
  const value = argument(site, 0);
  const share = Number(site.parameters[0]?.constant ?? 0.5);
  if (!(share >= 0 && share <= 1))
    throw site.statement.error(`The level of '${site.name}' must be a number from 0 to 1.`, site.node);
  const conditions = value.type.nullable ? [sql`${value.sql} is not null`] : [];
  // From the largest value on, because percentile_disc() prefers the first of two values.
  const fromEnd = bind(String(Number((1 - share).toPrecision(15))), 'float8');
  const found = site.over(
    sql`percentile_disc(${fromEnd}) within group (order by ${value.sql} desc)`,
    ...conditions,
  );
  if (value.type.nullable) return { sql: found, type: value.type };
  return site.mayBeEmpty
    ? { sql: sql`coalesce(${found}, ${defaultOf(value.type)})`, type: value.type }
    : { sql: found, type: value.type };
};

/** At most `max` values, in any order. */
const sample: AggregateEmitter = (site) => {
  const max = site.parameters[0]?.constant;
  if (typeof max !== 'bigint' || max < 1n)
    throw site.statement.error(`The size of '${site.name}' must be an integer of at least 1.`, site.node);
  const value = argument(site, 0);
  const list = listOf(site, toJson(value.sql, value.type));
  return {
    sql: sql`jsonb_path_query_array(${list}, (${bind(`$[0 to ${max - 1n}]`, 'text')})::jsonpath)`,
    type: arrayOf(withNull(value.type, false)),
  };
};

/** Moving averages over a window of values; without a size, over all values. */
const movingAverage: AggregateEmitter = (site) => {
  rejectWindow(site);
  const max = site.parameters[0];
  const list = listOf(site, sql`to_jsonb((${argumentSql(site, 0)})::float8)`);
  const number = sql`(each.v #>> '{}')::float8`;
  const frame =
    max === undefined || typeof max.constant !== 'bigint'
      ? sql`rows unbounded preceding`
      : sql`rows between ${rawSql(String(max.constant > 1n ? max.constant - 1n : 0n))} preceding and current row`;
  const size = max === undefined ? sql`jsonb_array_length(${list})` : max.sql;
  return {
    sql: sql`(select coalesce(jsonb_agg(run.v order by run.at), '[]'::jsonb) from (select sum(${number}) over (order by each.at ${frame}) / ${size} as v, each.at
      from jsonb_array_elements(${list}) with ordinality as each(v, at)) as run)`,
    type: arrayOf(scalar('float')),
  };
};

/** Merges maps by aggregating the values of each key. */
const mapAggregate =
  (name: Sql): AggregateEmitter =>
  (site) => {
    rejectWindow(site);
    const { type } = argument(site, 0);
    if (type.kind !== 'map' || !isNumber(type.value))
      throw site.statement.error(`Function '${site.name}' requires maps of numbers.`, argumentNode(site, 0));
    const list = listOf(site, argumentSql(site, 0));
    const number = fromJson(sql`entry.value`, sql`(entry.value #>> '{}')`, type.value);
    return {
      sql: sql`(select coalesce(jsonb_object_agg(one.k, one.v), '{}'::jsonb) from (select entry.key as k, ${name}(${number}) as v
        from jsonb_array_elements(${list}) as given, jsonb_each(given.value) as entry group by entry.key) as one)`,
      type: withNull(type, false),
    };
  };

/** Sum of the increases between successive values. */
const deltaSum: AggregateEmitter = (site) => {
  rejectWindow(site);
  const { type } = argument(site, 0);
  const list = listOf(site, toJson(argumentSql(site, 0), type));
  const number = sql`(each.v #>> '{}')::numeric`;
  return {
    sql: sql`(select (coalesce(sum(greatest(run.v, 0)), 0))::${type.kind === 'integer' ? sql`int8` : sql`float8`} from (select ${number} - lag(${number}) over (order by each.at) as v
      from jsonb_array_elements(${list}) with ordinality as each(v, at)) as run)`,
    type: scalar(type.kind === 'integer' ? 'integer' : 'float'),
  };
};

/**
 * The number of funnel steps reached in order within seconds of the first. Walks the rows by time and keeps, for
 * each step, the start of the latest path to it.
 */
const windowFunnel: AggregateEmitter = (site) => {
  rejectWindow(site);
  const [window, ...modes] = site.parameters;
  if (modes.length > 0)
    throw site.statement.error(
      `Function '${site.name}' does not support modes.`,
      site.node,
      'Use a FunnelsQuery.',
    );
  const seconds = window?.sql ?? sql`0`;
  const [time, ...steps] = site.values;
  if (time === undefined || steps.length === 0)
    throw site.statement.error(
      `Function '${site.name}' requires a time and at least one condition.`,
      site.node,
    );
  const count = rawSql(String(steps.length));
  const reached = steps.map(
    ({ sql: step }, index) => sql`case when ${step} then ${rawSql(String(index + 1))} end`,
  );
  const rows = site.over(
    sql`jsonb_agg(jsonb_build_array(extract(epoch from ${time.sql}), to_jsonb(array_remove(array[${commaList(reached)}], null))))`,
    sql`${time.sql} is not null`,
  );
  const previous = sql`walk.started[found.steps[walk.n + 1] - 1]`;
  const start = sql`case when found.steps[walk.n + 1] = 1 then found.times[walk.n + 1]
    when found.times[walk.n + 1] <= ${previous} + ${seconds} then ${previous} else walk.started[found.steps[walk.n + 1]] end`;
  return {
    sql: sql`(with recursive found as materialized (select coalesce(array_agg(at.t order by at.t, at.s), '{}') as times, coalesce(array_agg(at.s order by at.t, at.s), '{}') as steps
        from (select (given.value ->> 0)::float8 as t, step.value::int4 as s from jsonb_array_elements(coalesce(${rows}, '[]'::jsonb)) as given,
          jsonb_array_elements_text(given.value -> 1) as step) as at),
      walk(n, started) as (select 0, array_fill(null::float8, array[${count}]) union all
        select walk.n + 1, walk.started[:found.steps[walk.n + 1] - 1] || (${start}) || walk.started[found.steps[walk.n + 1] + 1:]
        from walk, found where walk.n < cardinality(found.times))
      select coalesce(max(step.number), 0) from walk, unnest(walk.started) with ordinality as step(started_at, number) where step.started_at is not null)`,
    type: scalar('integer'),
  };
};

/** Aggregates computed from an array of all values of a group. */
export const listAggregateEmitters = {
  medianExact: quantileExact,
  quantileExact,
  groupArraySample: sample,
  groupArrayMovingAvg: movingAverage,
  sumMap: mapAggregate(sql`sum`),
  minMap: mapAggregate(sql`min`),
  maxMap: mapAggregate(sql`max`),
  deltaSum,
  windowFunnel,
} satisfies Readonly<Record<string, AggregateEmitter>>;
