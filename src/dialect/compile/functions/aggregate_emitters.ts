import { bind, commaList, DistinctCount, sql, type Sql } from '../../sql.ts';
import { arrayOf, isComposite, scalar, type Type, withNull } from '../../types.ts';
import { orderedJson } from '../../functions/emit/ordered_json.ts';
import { defaultOf, fromJson, postgresType, toJson } from '../json_values.ts';
import {
  type AggregateEmitter,
  type AggregateCallSite,
  argument,
  type Emitted,
  argumentNode,
  argumentSql,
  argumentsSql,
} from './call_site.ts';

/** Without rows ClickHouse returns a default, unless the argument is nullable. */
function withEmptyValue(site: AggregateCallSite, value: Sql, type: Type, empty: Sql): Emitted {
  const nullable = site.values.some((one) => one.type.nullable);
  if (nullable) return { sql: value, type: withNull(type) };
  const plain = withNull(type, false);
  return { sql: site.mayBeEmpty ? sql`coalesce(${value}, ${empty})` : value, type: plain };
}

const distinctWord = (site: AggregateCallSite): Sql => (site.distinct ? sql`distinct ` : sql``);

const count: AggregateEmitter = (site) => {
  if (site.values.length === 0) return { sql: site.over(sql`count(*)`), type: scalar('integer') };
  const call = site.distinct ? distinctCount(site) : sql`count(${rowOf(site)})`;
  return { sql: site.over(call), type: scalar('integer') };
};

/** Counts no row with a null, as ClickHouse does. */
const distinctCount = (site: AggregateCallSite): Sql =>
  site.values.length === 1
    ? new DistinctCount(argumentSql(site, 0))
    : sql`count(distinct case when num_nulls(${argumentsSql(site)}) = 0 then ${rowOf(site)} end)`;

const rowOf = (site: AggregateCallSite): Sql =>
  site.values.length === 1 ? argumentSql(site, 0) : sql`(${argumentsSql(site)})`;

const countDistinct: AggregateEmitter = (site) => {
  if (site.isWindow)
    throw site.statement.error(
      `Function '${site.name}' does not support OVER.`,
      site.node,
      'Count in a subquery.',
    );
  return { sql: site.over(distinctCount(site)), type: scalar('integer') };
};

const sum: AggregateEmitter = (site) => {
  const { returnType } = site;
  const call = site.over(sql`sum(${distinctWord(site)}${argumentSql(site, 0)})`);
  const typed = returnType.kind === 'integer' ? sql`(${call})::int8` : call;
  return withEmptyValue(site, typed, returnType, defaultOf(withNull(returnType, false)));
};

const avg: AggregateEmitter = (site) => {
  const call = site.over(sql`avg((${argumentSql(site, 0)})::float8)`);
  return withEmptyValue(site, call, scalar('float'), sql`'NaN'::float8`);
};

/** Minimum or maximum. Types without min and max in PostgreSQL are converted. */
function extreme(site: AggregateCallSite, name: Sql): Sql {
  const { type } = argument(site, 0);
  const value = argumentSql(site, 0);
  switch (type.kind) {
    case 'string':
      return site.over(sql`${name}((${value}) collate "C")`);
    case 'uuid':
      return sql`(${site.over(sql`${name}((${value})::text collate "C")`)})::uuid`;
    case 'boolean':
      return sql`(${site.over(sql`${name}((${value})::int4)`)})::bool`;
    case 'json':
    case 'array':
    case 'tuple':
    case 'map':
      throw site.statement.error(
        `Function '${site.name}' requires values that can be ordered.`,
        argumentNode(site, 0),
      );
    default:
      return site.over(sql`${name}(${value})`);
  }
}

const extremeOf =
  (name: 'min' | 'max'): AggregateEmitter =>
  (site) =>
    withEmptyValue(
      site,
      extreme(site, name === 'min' ? sql`min` : sql`max`),
      site.returnType,
      defaultOf(withNull(site.returnType, false)),
    );

/**
 * Any non-null value: the minimum is cheapest. JSON is compared as the only item of an array, which PostgreSQL 15 has a
 * minimum for.
 */
const anyValue: AggregateEmitter = (site) => {
  const { type } = argument(site, 0);
  const value = argumentSql(site, 0);
  const call =
    isComposite(type) || type.kind === 'json'
      ? sql`(${site.over(sql`min(array[(${value})::jsonb])`, sql`${value} is not null`)})[1]`
      : extreme(site, sql`min`);
  return withEmptyValue(site, call, site.returnType, defaultOf(withNull(site.returnType, false)));
};

/**
 * The value beside the smallest or largest key: the extreme of all pairs, which needs no memory for the other values. Of
 * several, it is the one with the extreme value.
 */
const argExtreme =
  (name: Sql): AggregateEmitter =>
  (site) => {
    const [value, by] = [argument(site, 0), argument(site, 1)];
    if (site.isWindow)
      throw site.statement.error(`Function '${site.name}' does not support OVER.`, site.node);
    const conditions = [value, by]
      .filter(({ type }) => type.nullable)
      .map((one) => sql`${one.sql} is not null`);
    const isText = by.type.kind === 'string' || by.type.kind === 'uuid';
    const pair = isText
      ? sql`array[(${by.sql})::text, (${value.sql})::text] collate "C"`
      : sql`array[${orderedJson(by.sql, by.type)}, ${value.type.kind === 'datetime' ? sql`to_jsonb(${value.sql})` : toJson(value.sql, value.type)}]`;
    const found = sql`(${site.over(sql`${name}(${pair})`, ...conditions)})[2]`;
    const typed = isText
      ? sql`(${found})::${postgresType(value.type)}`
      : fromJson(found, sql`(${found} #>> '{}')`, value.type);
    return withEmptyValue(site, typed, value.type, defaultOf(withNull(value.type, false)));
  };

/** An array of the non-null values. A parameter limits its size. */
const group =
  (unique: boolean): AggregateEmitter =>
  (site) => {
    const value = argument(site, 0);
    const isUnique = unique || site.distinct;
    const conditions = value.type.nullable ? [sql`${value.sql} is not null`] : [];
    const distinct = isUnique && !site.isWindow ? sql`distinct ` : sql``;
    const list = site.over(
      sql`jsonb_agg(${distinct}${toJson(value.sql, value.type)}${site.orderBy})`,
      ...conditions,
    );
    // PostgreSQL does not support DISTINCT in window functions.
    const whole =
      isUnique && site.isWindow
        ? sql`(select coalesce(jsonb_agg(distinct one.value), '[]'::jsonb) from jsonb_array_elements(${list}) as one)`
        : sql`coalesce(${list}, '[]'::jsonb)`;
    const max = site.parameters[0]?.constant;
    const type = arrayOf(withNull(value.type, false));
    if (typeof max !== 'bigint') return { sql: whole, type };
    const path = max < 1n ? '$[0 to -1]' : `$[0 to ${max - 1n}]`;
    return { sql: sql`jsonb_path_query_array(${whole}, (${bind(path, 'text')})::jsonpath)`, type };
  };

/** @throws DialectError unless the level is a constant from 0 to 1 */
function quantileLevel(site: AggregateCallSite, index: number): Sql {
  const setting = site.parameters[index];
  if (setting === undefined) return sql`0.5::float8`;
  const level = Number(setting.constant ?? NaN);
  if (!(level >= 0 && level <= 1))
    throw site.statement.error(`The level of '${site.name}' must be a number from 0 to 1.`, site.node);
  return bind(String(level), 'float8');
}

function ordered(site: AggregateCallSite, call: Sql): Sql {
  if (site.isWindow) throw site.statement.error(`Function '${site.name}' does not support OVER.`, site.node);
  return site.over(call);
}

const quantile: AggregateEmitter = (site) => {
  const call = sql`percentile_cont(${quantileLevel(site, 0)}) within group (order by (${argumentSql(site, 0)})::float8)`;
  return withEmptyValue(site, ordered(site, call), scalar('float'), sql`'NaN'::float8`);
};

const quantiles: AggregateEmitter = (site) => {
  const levels = commaList(site.parameters.map((_, index) => quantileLevel(site, index)));
  const call = sql`percentile_cont(array[${levels}]) within group (order by (${argumentSql(site, 0)})::float8)`;
  return {
    sql: sql`coalesce(to_jsonb(${ordered(site, call)}), '[]'::jsonb)`,
    type: arrayOf(scalar('float')),
  };
};

const stringAgg: AggregateEmitter = (site) => ({
  sql: site.over(
    sql`string_agg(${distinctWord(site)}${argumentSql(site, 0)}, ${argumentSql(site, 1)}${site.orderBy})`,
  ),
  type: scalar('string', true),
});

/** The most frequent values; ties are ordered by value. */
const topK: AggregateEmitter = (site) => {
  const value = argument(site, 0);
  const conditions = value.type.nullable ? [sql`${value.sql} is not null`] : [];
  const list = site.over(sql`jsonb_agg(${toJson(value.sql, value.type)})`, ...conditions);
  const max = site.parameters[0]?.sql ?? sql`10::int8`;
  return {
    sql: sql`(select coalesce(jsonb_agg(top.v order by top.n desc, top.v), '[]'::jsonb) from (select one.value as v,
      count(*) as n from jsonb_array_elements(${list}) as one group by one.value order by n desc, v limit ${max}) as top)`,
    type: arrayOf(withNull(value.type, false)),
  };
};

const simpleLinearRegression: AggregateEmitter = (site) => {
  const both = sql`(${argumentSql(site, 1)})::float8, (${argumentSql(site, 0)})::float8`;
  const [slope, intercept] = [site.over(sql`regr_slope(${both})`), site.over(sql`regr_intercept(${both})`)];
  return {
    sql: sql`jsonb_build_array(${slope}, ${intercept})`,
    type: {
      kind: 'tuple',
      items: [scalar('float', true), scalar('float', true)],
      names: ['k', 'b'],
      nullable: false,
    },
  };
};

/** A preceding or following row; null outside the partition, as in PostgreSQL. */
const neighborRow =
  (name: 'lag' | 'lead'): AggregateEmitter =>
  (site) => {
    const distance = site.values[1] === undefined ? sql`1` : sql`(${argumentSql(site, 1)})::int4`;
    const rest = site.values[2] === undefined ? sql`` : sql`, ${argumentSql(site, 2)}`;
    const call = name === 'lag' ? sql`lag` : sql`lead`;
    const nullable = site.values[2]?.type.nullable ?? true;
    return {
      sql: site.over(sql`${call}(${argumentSql(site, 0)}, ${distance}${rest})`),
      type: withNull(site.returnType, nullable || argument(site, 0).type.nullable),
    };
  };

const nthValue: AggregateEmitter = (site) => ({
  sql: site.over(sql`nth_value(${argumentSql(site, 0)}, (${argumentSql(site, 1)})::int4)`),
  type: withNull(site.returnType),
});

/** Aggregates and window functions that need more than an SQL template. */
export const basicAggregateEmitters = {
  count,
  countDistinct,
  uniq: countDistinct,
  uniqExact: countDistinct,
  uniqHLL12: countDistinct,
  sum,
  avg,
  min: extremeOf('min'),
  max: extremeOf('max'),
  any: anyValue,
  anyLast: anyValue,
  anyHeavy: anyValue,
  argMin: argExtreme(sql`min`),
  argMax: argExtreme(sql`max`),
  groupArray: group(false),
  groupUniqArray: group(true),
  array_agg: group(false),
  median: quantile,
  quantile,
  quantiles,
  string_agg: stringAgg,
  topK,
  simpleLinearRegression,
  lag: neighborRow('lag'),
  lead: neighborRow('lead'),
  lagInFrame: neighborRow('lag'),
  leadInFrame: neighborRow('lead'),
  nth_value: nthValue,
} satisfies Readonly<Record<string, AggregateEmitter>>;
