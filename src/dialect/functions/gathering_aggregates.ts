import { defaultOf, fromJson, toJson } from '../compile/expressions/coerce.ts';
import { bind, commaList, rawSql, sql, type Sql } from '../sql.ts';
import { arrayOf, isNumber, scalarType, withNull } from '../types.ts';
import { basicAggregateEmitters } from './aggregates.ts';
import {
  aggregate,
  type AggregateCallSite,
  type AggregateEmitter,
  argument,
  argumentNode,
  argumentSql,
  type FunctionDefinition,
  standardAggregate,
} from './function_definition.ts';

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
    type: arrayOf(scalarType('float')),
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
    type: scalarType(type.kind === 'integer' ? 'integer' : 'float'),
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
    type: scalarType('integer'),
  };
};

/** Aggregates computed from an array of all values of a group. */
const listAggregateEmitters = {
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

/** Aggregates that gather all values of a group. */
export const gatheringAggregates: readonly FunctionDefinition[] = [
  aggregate('groupArray', ['T'], 'array(T)', 'The values as an array.', {
    parameters: ['integer?'],
    parameterRanges: [{ index: 0, min: 1 }],
    sql: basicAggregateEmitters.groupArray,
    gathers: 'all',
    isOrderSensitive: true,
    distinct: 'supported',
  }),
  aggregate('groupUniqArray', ['T'], 'array(T)', 'The distinct values as an array.', {
    parameters: ['integer?'],
    parameterRanges: [{ index: 0, min: 1 }],
    sql: basicAggregateEmitters.groupUniqArray,
    gathers: 'distinct',
    sorts: true,
    distinct: 'supported',
  }),
  aggregate('groupArraySample', ['T'], 'array(T)', 'A random sample of the values.', {
    parameters: ['integer', 'integer?'],
    parameterRanges: [
      { index: 0, min: 1 },
      { index: 1, min: 0 },
    ],
    sql: listAggregateEmitters.groupArraySample,
    gathers: 'all',
    isOrderSensitive: true,
  }),
  aggregate('groupArrayMovingAvg', ['number'], 'array(float)', 'Moving averages of the values.', {
    parameters: ['integer?'],
    parameterRanges: [{ index: 0, min: 1 }],
    sql: listAggregateEmitters.groupArrayMovingAvg,
    gathers: 'all',
    isOrderSensitive: true,
  }),
  aggregate('topK', ['T'], 'array(T)', 'The most frequent values.', {
    parameters: ['integer?'],
    parameterRanges: [{ index: 0, min: 1, max: 16_777_215 }],
    sql: basicAggregateEmitters.topK,
    gathers: 'all',
  }),
  aggregate('sumMap', ['map'], 'map', 'Sum of the values of each key.', {
    sql: listAggregateEmitters.sumMap,
    gathers: 'all',
  }),
  aggregate('minMap', ['map'], 'map', 'Smallest value of each key.', {
    sql: listAggregateEmitters.minMap,
    gathers: 'all',
  }),
  aggregate('maxMap', ['map'], 'map', 'Largest value of each key.', {
    sql: listAggregateEmitters.maxMap,
    gathers: 'all',
  }),
  aggregate('deltaSum', ['number'], 'number', 'Sum of the increases between successive values.', {
    sql: listAggregateEmitters.deltaSum,
    gathers: 'all',
    isOrderSensitive: true,
  }),
  aggregate(
    'windowFunnel',
    ['date_or_datetime', 'boolean...'],
    'integer',
    'Number of steps reached in order within a time window.',
    {
      parameters: ['integer', 'string...'],
      parameterRanges: [{ index: 0, min: 0 }],
      sql: listAggregateEmitters.windowFunnel,
      gathers: 'all',
    },
  ),
  standardAggregate('array_agg', ['T'], 'array(T)', 'The values as an array, nulls included.', {
    sql: basicAggregateEmitters.array_agg,
    gathers: 'all',
    isOrderSensitive: true,
    distinct: 'supported',
  }),
  standardAggregate('string_agg', ['string', 'string'], 'string', 'The strings joined by a separator.', {
    sql: basicAggregateEmitters.string_agg,
    gathers: 'all',
    isOrderSensitive: true,
    distinct: 'without_over',
  }),
  standardAggregate('json_agg', ['any'], 'json', 'The values as a JSON array.', {
    sql: 'jsonb_agg($1)',
    gathers: 'all',
  }),
];

/** NaN for too few values; null for nullable arguments, as in ClickHouse. */
function orNaN(site: AggregateCallSite, value: Sql): ReturnType<AggregateEmitter> {
  const nullable = site.values.some(({ type }) => type.nullable);
  return nullable
    ? { sql: sql`(${value})::float8`, type: scalarType('float', true) }
    : { sql: sql`coalesce((${value})::float8, 'NaN'::float8)`, type: scalarType('float') };
}

const number = (site: AggregateCallSite, index: number): Sql => sql`(${argumentSql(site, index)})::float8`;

const statistic =
  (name: Sql): AggregateEmitter =>
  (site) =>
    orNaN(
      site,
      site.over(
        site.values.length === 1
          ? sql`${name}(${number(site, 0)})`
          : sql`${name}(${number(site, 0)}, ${number(site, 1)})`,
      ),
    );

const sumOfPowers = (site: AggregateCallSite, power: number): Sql =>
  site.over(sql`sum((${number(site, 0)}) ^ ${bind(String(power), 'float8')})`);

/** Central moments computed from power sums. */
const moment =
  (power: 3 | 4): AggregateEmitter =>
  (site) => {
    const count = site.over(sql`count(${argumentSql(site, 0)})`);
    const share = (of: number): Sql => sql`(${sumOfPowers(site, of)} / nullif(${count}, 0))`;
    const mean = share(1);
    const variance = sql`nullif(greatest(${share(2)} - ${mean} ^ 2, 0), 0)`;
    const central =
      power === 3
        ? sql`(${share(3)} - 3 * ${mean} * ${share(2)} + 2 * ${mean} ^ 3)`
        : sql`(${share(4)} - 4 * ${mean} * ${share(3)} + 6 * ${mean} ^ 2 * ${share(2)} - 3 * ${mean} ^ 4)`;
    return orNaN(site, sql`(${central} / (${variance} ^ ${power === 3 ? sql`1.5` : sql`2`}))`);
  };

const avgWeighted: AggregateEmitter = (site) => {
  const both = site.values.filter(({ type }) => type.nullable).map((value) => sql`${value.sql} is not null`);
  const total = site.over(sql`sum(${number(site, 1)})`, ...both);
  const product = site.over(sql`sum(${number(site, 0)} * ${number(site, 1)})`, ...both);
  return orNaN(site, sql`(${product} / nullif(${total}, 0))`);
};

const bitAggregate =
  (name: Sql, none: Sql): AggregateEmitter =>
  (site) => {
    const value = site.over(sql`${name}(${argumentSql(site, 0)})`);
    const { nullable } = argument(site, 0).type;
    return nullable
      ? { sql: value, type: scalarType('integer', true) }
      : { sql: sql`coalesce(${value}, ${none})`, type: scalarType('integer') };
  };

/** Numeric aggregates with other names in PostgreSQL, or with other results for no rows. */
const statisticEmitters = {
  stddevPop: statistic(sql`stddev_pop`),
  stddevSamp: statistic(sql`stddev_samp`),
  varPop: statistic(sql`var_pop`),
  varSamp: statistic(sql`var_samp`),
  covarPop: statistic(sql`covar_pop`),
  covarSamp: statistic(sql`covar_samp`),
  corr: statistic(sql`corr`),
  skewPop: moment(3),
  kurtPop: moment(4),
  avgWeighted,
  groupBitAnd: bitAggregate(sql`bit_and`, sql`-1::int8`),
  groupBitOr: bitAggregate(sql`bit_or`, sql`0::int8`),
  groupBitXor: bitAggregate(sql`bit_xor`, sql`0::int8`),
} satisfies Readonly<Record<string, AggregateEmitter>>;

/** Aggregates of statistics, quantiles and bits. */
export const statisticAggregates: readonly FunctionDefinition[] = [
  aggregate('groupBitAnd', ['integer'], 'integer', 'Bits that are set in all values.', {
    sql: statisticEmitters.groupBitAnd,
  }),
  aggregate('groupBitOr', ['integer'], 'integer', 'Bits that are set in any value.', {
    sql: statisticEmitters.groupBitOr,
  }),
  aggregate('groupBitXor', ['integer'], 'integer', 'Bits that are set in an odd number of values.', {
    sql: statisticEmitters.groupBitXor,
  }),
  aggregate('median', ['number'], 'float', 'The median, interpolated between two values if necessary.', {
    sql: basicAggregateEmitters.median,
    sorts: true,
  }),
  aggregate('medianExact', ['number'], 'number', 'The median, always an existing value.', {
    sql: listAggregateEmitters.medianExact,
    sorts: true,
  }),
  aggregate('quantile', ['number'], 'float', 'The quantile at a level, interpolated.', {
    parameters: ['float?'],
    sql: basicAggregateEmitters.quantile,
    sorts: true,
  }),
  aggregate('quantileExact', ['number'], 'number', 'The quantile at a level, always an existing value.', {
    parameters: ['float?'],
    sql: listAggregateEmitters.quantileExact,
    sorts: true,
  }),
  aggregate('quantiles', ['number'], 'array(float)', 'The quantiles at several levels.', {
    parameters: ['float', 'float...'],
    sql: basicAggregateEmitters.quantiles,
    sorts: true,
  }),
  aggregate('stddevPop', ['number'], 'float', 'Standard deviation of all values.', {
    sql: statisticEmitters.stddevPop,
  }),
  aggregate('stddevSamp', ['number'], 'float', 'Standard deviation of a sample.', {
    sql: statisticEmitters.stddevSamp,
  }),
  aggregate('varPop', ['number'], 'float', 'Variance of all values.', {
    sql: statisticEmitters.varPop,
  }),
  aggregate('varSamp', ['number'], 'float', 'Variance of a sample.', {
    sql: statisticEmitters.varSamp,
  }),
  aggregate('covarPop', ['number', 'number'], 'float', 'Covariance of all pairs.', {
    sql: statisticEmitters.covarPop,
  }),
  aggregate('covarSamp', ['number', 'number'], 'float', 'Covariance of a sample.', {
    sql: statisticEmitters.covarSamp,
  }),
  standardAggregate('corr', ['number', 'number'], 'float', 'Correlation of pairs.', {
    sql: statisticEmitters.corr,
  }),
  aggregate('skewPop', ['number'], 'float', 'Skewness of all values.', {
    sql: statisticEmitters.skewPop,
  }),
  aggregate('kurtPop', ['number'], 'float', 'Kurtosis of all values.', {
    sql: statisticEmitters.kurtPop,
  }),
  aggregate('avgWeighted', ['number', 'number'], 'float', 'Weighted mean.', {
    sql: statisticEmitters.avgWeighted,
  }),
  aggregate(
    'simpleLinearRegression',
    ['number', 'number'],
    'tuple',
    'Slope and intercept of the regression line.',
    {
      sql: basicAggregateEmitters.simpleLinearRegression,
    },
  ),
];
