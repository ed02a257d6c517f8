import {
  compactText,
  defaultOf,
  fromJson,
  itemTypeOf,
  toJson,
  toJsonItem,
} from '../compile/expressions/coerce.ts';
import { jsonArray } from '../many_arguments.ts';
import { bind, commaList, rawSql, sql, type Sql } from '../sql.ts';
import { arrayOf, isNumber, scalarType, tupleOf, withNull } from '../types.ts';
import { distinctWord, withEmptyValue } from './aggregates.ts';
import {
  aggregate,
  type AggregateCallSite,
  type AggregateEmitter,
  argument,
  argumentError,
  argumentSql,
  type FunctionDefinition,
  isNullable,
  standardAggregate,
} from './function_definition.ts';

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
  return withEmptyValue(site, ordered(site, call), scalarType('float'), sql`'NaN'::float8`);
};

const quantiles: AggregateEmitter = (site) => {
  const levels = commaList(site.parameters.map((_, index) => quantileLevel(site, index)));
  const call = sql`percentile_cont(array[${levels}]) within group (order by (${argumentSql(site, 0)})::float8)`;
  return {
    sql: sql`coalesce(to_jsonb(${ordered(site, call)}), '[]'::jsonb)`,
    type: arrayOf(scalarType('float')),
  };
};

const stringAgg: AggregateEmitter = (site) => ({
  sql: site.over(
    sql`string_agg(${distinctWord(site)}${argumentSql(site, 0)}, ${argumentSql(site, 1)}${site.orderBy})`,
  ),
  type: scalarType('string', true),
});

const jsonText: AggregateEmitter = (site) => {
  const value = argument(site, 0);
  const list = site.over(sql`jsonb_agg(${toJsonItem(value.sql, value.type)}${site.orderBy})`);
  return { sql: compactText(sql`coalesce(${list}, '[]'::jsonb)`), type: scalarType('string') };
};

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
      items: [scalarType('float', true), scalarType('float', true)],
      names: ['k', 'b'],
      nullable: false,
    },
  };
};

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

/** The value at a level of the sorted values; between two values, the larger or the smaller one. */
const quantileExact =
  (between: 'larger' | 'smaller' | 'smaller at the middle'): AggregateEmitter =>
  (site) => {
    rejectWindow(site);
    const value = argument(site, 0);
    const share = Number(site.parameters[0]?.constant ?? 0.5);
    if (!(share >= 0 && share <= 1))
      throw site.statement.error(`The level of '${site.name}' must be a number from 0 to 1.`, site.node);
    const conditions = value.type.nullable ? [sql`${value.sql} is not null`] : [];
    // For the larger one from the largest value on, because percentile_disc() prefers the first of two values.
    const isLarger = between === 'larger' || (between === 'smaller at the middle' && share !== 0.5);
    const level = isLarger ? Number((1 - share).toPrecision(15)) : share;
    const direction = isLarger ? sql` desc` : sql``;
    const found = site.over(
      sql`percentile_disc(${bind(String(level), 'float8')}) within group (order by ${value.sql}${direction})`,
      ...conditions,
    );
    if (value.type.nullable) return { sql: found, type: value.type };
    return site.mayBeEmpty
      ? { sql: sql`coalesce(${found}, ${defaultOf(value.type)})`, type: value.type }
      : { sql: found, type: value.type };
  };

/** The same at several levels, as an array. Without values, its items are defaults. */
const quantilesExact =
  (between: Parameters<typeof quantileExact>[0]): AggregateEmitter =>
  (site) => {
    const item = withNull(argument(site, 0).type, false);
    const items = site.parameters.map((level) => {
      const found = quantileExact(between)({ ...site, parameters: [level] });
      return toJsonItem(sql`coalesce(${'type' in found ? found.sql : found}, ${defaultOf(item)})`, item);
    });
    return { sql: jsonArray(items), type: arrayOf(item) };
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

/** Moving sums or averages over a window of values; without a size, over all values. */
const moving =
  (what: 'sum' | 'average'): AggregateEmitter =>
  (site) => {
    rejectWindow(site);
    const max = site.parameters[0];
    const isWhole = what === 'sum' && argument(site, 0).type.kind === 'integer';
    const sqlType = isWhole ? sql`int8` : sql`float8`;
    const list = listOf(site, sql`to_jsonb((${argumentSql(site, 0)})::${sqlType})`);
    const number = sql`(each.v #>> '{}')::${sqlType}`;
    const frame =
      max === undefined || typeof max.constant !== 'bigint'
        ? sql`rows unbounded preceding`
        : sql`rows between ${rawSql(String(max.constant > 1n ? max.constant - 1n : 0n))} preceding and current row`;
    const size = max === undefined ? sql`jsonb_array_length(${list})` : max.sql;
    const divided = what === 'sum' ? sql`` : sql` / ${size}`;
    return {
      sql: sql`(select coalesce(jsonb_agg(run.v order by run.at), '[]'::jsonb) from (select sum(${number}) over (order by each.at ${frame})${divided} as v, each.at
      from jsonb_array_elements(${list}) with ordinality as each(v, at)) as run)`,
      type: arrayOf(scalarType(isWhole ? 'integer' : 'float')),
    };
  };

/** Merges maps by aggregating the values of each key. */
const mapAggregate =
  (name: Sql): AggregateEmitter =>
  (site) => {
    rejectWindow(site);
    const { type } = argument(site, 0);
    const values = site.values[1];
    if (values !== undefined) return pairsAggregate(site, name);
    if (type.kind !== 'map' || !isNumber(type.value))
      throw argumentError(
        site,
        0,
        `Function '${site.name}' requires maps of numbers, or an array of keys and one of numbers.`,
      );
    const list = listOf(site, argumentSql(site, 0));
    const number = fromJson(sql`entry.value`, sql`(entry.value #>> '{}')`, type.value);
    return {
      sql: sql`(select coalesce(jsonb_object_agg(one.k, one.v), '{}'::jsonb) from (select entry.key as k, ${name}(${number}) as v
        from jsonb_array_elements(${list}) as given, jsonb_each(given.value) as entry group by entry.key) as one)`,
      type: withNull(type, false),
    };
  };

/** The same of an array of keys and an array of values, as a tuple of both, sorted by key. */
function pairsAggregate(site: AggregateCallSite, name: Sql): ReturnType<AggregateEmitter> {
  const [keys, values] = [argument(site, 0), argument(site, 1)];
  const [keyType, valueType] = [itemTypeOf(keys), itemTypeOf(values)];
  if (keys.type.kind !== 'array' || !isNumber(valueType))
    throw argumentError(
      site,
      keys.type.kind === 'array' ? 1 : 0,
      `Function '${site.name}' requires maps of numbers, or an array of keys and one of numbers.`,
    );
  const list = listOf(site, sql`jsonb_build_array(${keys.sql}, ${values.sql})`);
  const number = fromJson(sql`entry.v`, sql`(entry.v #>> '{}')`, valueType);
  const order = keyType.kind === 'string' ? sql`(one.k #>> '{}') collate "C"` : sql`one.k`;
  return {
    sql: sql`(select jsonb_build_array(coalesce(jsonb_agg(one.k order by ${order}), '[]'::jsonb), coalesce(jsonb_agg(one.v order by ${order}), '[]'::jsonb))
      from (select entry.k, ${name}(${number}) as v from jsonb_array_elements(${list}) as given,
        rows from (jsonb_array_elements(given.value -> 0), jsonb_array_elements(given.value -> 1)) as entry(k, v) group by entry.k) as one)`,
    type: tupleOf([keys.type, values.type]),
  };
}

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

/** Aggregates that gather all values of a group. */
export const gatheringAggregates: readonly FunctionDefinition[] = [
  aggregate('groupArray(T): array(T)', 'The values as an array.', group(false), {
    parameters: ['integer?'],
    parameterRanges: [{ index: 0, min: 1 }],
    gathers: 'all',
    isOrderSensitive: true,
    distinct: 'supported',
  }),
  aggregate('groupUniqArray(T): array(T)', 'The distinct values as an array.', group(true), {
    parameters: ['integer?'],
    parameterRanges: [{ index: 0, min: 1 }],
    gathers: 'distinct',
    sorts: true,
    distinct: 'supported',
  }),
  aggregate('groupArraySample(T): array(T)', 'A random sample of the values.', sample, {
    parameters: ['integer', 'integer?'],
    parameterRanges: [
      { index: 0, min: 1 },
      { index: 1, min: 0 },
    ],
    gathers: 'all',
    isOrderSensitive: true,
  }),
  ...(['average', 'sum'] as const).map((what) =>
    aggregate(
      what === 'sum'
        ? 'groupArrayMovingSum(number): array(number)'
        : 'groupArrayMovingAvg(number): array(float)',
      `Moving ${what}s of the values.`,
      moving(what),
      {
        parameters: ['integer?'],
        parameterRanges: [{ index: 0, min: 1 }],
        gathers: 'all',
        isOrderSensitive: true,
      },
    ),
  ),
  aggregate('topK(T): array(T)', 'The most frequent values.', topK, {
    parameters: ['integer?'],
    parameterRanges: [{ index: 0, min: 1, max: 16_777_215 }],
    gathers: 'all',
  }),
  aggregate('sumMap(any, array(any)?): any', 'Sum of the values of each key.', mapAggregate(sql`sum`), {
    gathers: 'all',
  }),
  aggregate('minMap(any, array(any)?): any', 'Smallest value of each key.', mapAggregate(sql`min`), {
    gathers: 'all',
  }),
  aggregate('maxMap(any, array(any)?): any', 'Largest value of each key.', mapAggregate(sql`max`), {
    gathers: 'all',
  }),
  aggregate('deltaSum(number): number', 'Sum of the increases between successive values.', deltaSum, {
    gathers: 'all',
    isOrderSensitive: true,
  }),
  aggregate(
    'windowFunnel(date_or_datetime, boolean...): integer',
    'Number of steps reached in order within a time window.',
    windowFunnel,
    { parameters: ['integer', 'string...'], parameterRanges: [{ index: 0, min: 0 }], gathers: 'all' },
  ),
  standardAggregate('array_agg(T): array(T)', 'The values as an array, nulls included.', group(false), {
    gathers: 'all',
    isOrderSensitive: true,
    distinct: 'supported',
  }),
  standardAggregate('string_agg(string, string): string', 'The strings joined by a separator.', stringAgg, {
    gathers: 'all',
    isOrderSensitive: true,
    distinct: 'without_over',
  }),
  standardAggregate('json_agg(any): string', 'The values as the text of a JSON array.', jsonText, {
    gathers: 'all',
    isOrderSensitive: true,
  }),
];

/** NaN for too few values; null for nullable arguments, as in ClickHouse. */
function orNaN(site: AggregateCallSite, value: Sql): ReturnType<AggregateEmitter> {
  const nullable = isNullable(site);
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

const betweenTwo = [
  ['', 'the larger', 'larger'],
  ['High', 'the larger', 'larger'],
  ['Low', 'the smaller', 'smaller at the middle'],
] as const;

/** Quantiles that are existing values. */
const exactQuantiles = betweenTwo.flatMap(([suffix, which, between]) => [
  aggregate(
    `medianExact${suffix}(number): number`,
    `The median, ${which} of two middle values.`,
    quantileExact(between),
    {
      sorts: true,
    },
  ),
  aggregate(
    `quantileExact${suffix}(number): number`,
    `The quantile at a level, at 0.5 ${which} of two middle values.`,
    quantileExact(between),
    { parameters: ['float?'], sorts: true },
  ),
  aggregate(
    `quantilesExact${suffix}(number): array(number)`,
    `The quantiles at several levels, at 0.5 ${which} of two middle values.`,
    quantilesExact(between),
    { parameters: ['float', 'float...'], sorts: true },
  ),
]);

/** Aggregates of statistics, quantiles and bits. */
export const statisticAggregates: readonly FunctionDefinition[] = [
  aggregate(
    'groupBitAnd(integer): integer',
    'Bits that are set in all values.',
    bitAggregate(sql`bit_and`, sql`-1::int8`),
  ),
  aggregate(
    'groupBitOr(integer): integer',
    'Bits that are set in any value.',
    bitAggregate(sql`bit_or`, sql`0::int8`),
  ),
  aggregate(
    'groupBitXor(integer): integer',
    'Bits that are set in an odd number of values.',
    bitAggregate(sql`bit_xor`, sql`0::int8`),
  ),
  aggregate('median(number): float', 'The median, interpolated between two values if necessary.', quantile, {
    sorts: true,
  }),
  ...exactQuantiles,
  standardAggregate(
    'percentile_disc(number): number',
    'The smallest value that is at least the quantile at a level.',
    quantileExact('smaller'),
    { parameters: ['float?'], sorts: true },
  ),
  ...(['', 'ExactInclusive'] as const).flatMap((suffix) => [
    aggregate(
      `quantile${suffix}(number): float`,
      'The quantile at a level, interpolated between two values if necessary.',
      quantile,
      { parameters: ['float?'], sorts: true },
    ),
    aggregate(`quantiles${suffix}(number): array(float)`, 'The quantiles at several levels.', quantiles, {
      parameters: ['float', 'float...'],
      sorts: true,
    }),
  ]),
  aggregate('stddevPop(number): float', 'Standard deviation of all values.', statistic(sql`stddev_pop`)),
  aggregate('stddevSamp(number): float', 'Standard deviation of a sample.', statistic(sql`stddev_samp`)),
  aggregate('varPop(number): float', 'Variance of all values.', statistic(sql`var_pop`)),
  aggregate('varSamp(number): float', 'Variance of a sample.', statistic(sql`var_samp`)),
  aggregate('covarPop(number, number): float', 'Covariance of all pairs.', statistic(sql`covar_pop`)),
  aggregate('covarSamp(number, number): float', 'Covariance of a sample.', statistic(sql`covar_samp`)),
  standardAggregate('corr(number, number): float', 'Correlation of pairs.', statistic(sql`corr`)),
  aggregate('skewPop(number): float', 'Skewness of all values.', moment(3)),
  aggregate('kurtPop(number): float', 'Kurtosis of all values.', moment(4)),
  aggregate('avgWeighted(number, number): float', 'Weighted mean.', avgWeighted),
  aggregate(
    'simpleLinearRegression(number, number): tuple',
    'Slope and intercept of the regression line.',
    simpleLinearRegression,
  ),
];
