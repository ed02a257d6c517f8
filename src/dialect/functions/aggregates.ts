import { defaultOf, fromJson, postgresType, toJson } from '../compile/expressions/coerce.ts';
import { DistinctCount, rowCount, sql, type Sql } from '../sql.ts';
import { isComposite, scalarType, type Type, withNull } from '../types.ts';
import {
  aggregate,
  type AggregateCallSite,
  type AggregateEmitter,
  argument,
  argumentError,
  argumentSql,
  argumentsSql,
  type Emitted,
  type FunctionDefinition,
  standardAggregate,
  windowFunction,
} from './function_definition.ts';

/** Values that are strings in JSON. There, booleans follow all numbers, arrays follow booleans, strings precede numbers. */
const notFinite = sql`'{"Infinity": true, "-Infinity": "", "NaN": [1]}'::jsonb`;

/** A value as jsonb that sorts like the value. Not for strings, which sort by bytes. */
function orderedJson(value: Sql, type: Type): Sql {
  switch (type.kind) {
    case 'float':
    case 'decimal':
      return sql`coalesce(${notFinite} -> (${value})::text, to_jsonb(${value}))`;
    case 'date':
    case 'datetime': {
      const infinite = sql`case when ${value} > '1970-01-01' then 'true'::jsonb else '""'::jsonb end`;
      return sql`(case when isfinite(${value}) then to_jsonb(extract(epoch from ${value})) else ${infinite} end)`;
    }
    case 'interval':
      return sql`to_jsonb(extract(epoch from ${value}))`;
    default:
      return toJson(value, type);
  }
}

/** Without rows ClickHouse returns a default, unless the argument is nullable. */
export function withEmptyValue(site: AggregateCallSite, value: Sql, type: Type, empty: Sql): Emitted {
  const nullable = site.values.some((one) => one.type.nullable);
  if (nullable) return { sql: value, type: withNull(type) };
  const plain = withNull(type, false);
  return { sql: site.mayBeEmpty ? sql`coalesce(${value}, ${empty})` : value, type: plain };
}

export const distinctWord = (site: AggregateCallSite): Sql => (site.distinct ? sql`distinct ` : sql``);

const count: AggregateEmitter = (site) => {
  if (site.values.length === 0) return { sql: site.over(rowCount), type: scalarType('integer') };
  const call = site.distinct ? distinctCount(site) : sql`count(${rowOf(site)})`;
  return { sql: site.over(call), type: scalarType('integer') };
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
  return { sql: site.over(distinctCount(site)), type: scalarType('integer') };
};

const sum: AggregateEmitter = (site) => {
  const { returnType } = site;
  const call = site.over(sql`sum(${distinctWord(site)}${argumentSql(site, 0)})`);
  const typed = returnType.kind === 'integer' ? sql`(${call})::int8` : call;
  return withEmptyValue(site, typed, returnType, defaultOf(withNull(returnType, false)));
};

const avg: AggregateEmitter = (site) => {
  const call = site.over(sql`avg((${argumentSql(site, 0)})::float8)`);
  return withEmptyValue(site, call, scalarType('float'), sql`'NaN'::float8`);
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
      throw argumentError(site, 0, `Function '${site.name}' requires values that can be ordered.`);
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
 * The first or last non-null value of sorted rows: that with the extreme number, which needs no memory for the others. Of
 * rows in no order, the minimum and the maximum are cheapest. JSON is compared as the only item of an array, which
 * PostgreSQL 15 has a minimum for.
 */
const anyValue =
  (which: 'first' | 'last'): AggregateEmitter =>
  (site) => {
    const { type } = argument(site, 0);
    const value = argumentSql(site, 0);
    const name = which === 'first' ? sql`min` : sql`max`;
    const isGiven = type.nullable ? [sql`${value} is not null`] : [];
    const found = (): Sql => {
      if (site.ordinal !== null) {
        const item = type.kind === 'datetime' ? sql`to_jsonb(${value})` : toJson(value, type);
        const pair = site.over(sql`${name}(array[to_jsonb(${site.ordinal}), ${item}])`, ...isGiven);
        return fromJson(sql`(${pair})[2]`, sql`((${pair})[2] #>> '{}')`, type);
      }
      return isComposite(type) || type.kind === 'json'
        ? sql`(${site.over(sql`${name}(array[(${value})::jsonb])`, sql`${value} is not null`)})[1]`
        : extreme(site, name);
    };
    return withEmptyValue(site, found(), site.returnType, defaultOf(withNull(site.returnType, false)));
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

/** Aggregates that keep one value, or a set of hashed ones. Each also takes combinators, such as `If` with a condition as its last argument. */
export const aggregates: readonly FunctionDefinition[] = [
  standardAggregate('count(any...): integer', 'Number of rows, or of rows with a non-null argument.', count, {
    distinct: 'without_over',
  }),
  aggregate('countDistinct(any, any...): integer', 'Number of distinct non-null values.', countDistinct, {
    sorts: true,
    distinct: 'without_over',
  }),
  standardAggregate('sum(number): number', 'Sum of the non-null values; 0 if there are none.', sum, {
    distinct: 'without_over',
  }),
  standardAggregate('avg(number): float', 'Mean of the non-null values.', avg),
  standardAggregate('min(T): T', 'Smallest value.', extremeOf('min'), { distinct: 'supported' }),
  standardAggregate('max(T): T', 'Largest value.', extremeOf('max'), { distinct: 'supported' }),
  standardAggregate('any(T): T', 'The first non-null value of sorted rows, or any.', anyValue('first'), {
    distinct: 'supported',
    isOrderSensitive: true,
  }),
  aggregate('anyLast(T): T', 'The last non-null value of sorted rows, or any.', anyValue('last'), {
    distinct: 'supported',
    isOrderSensitive: true,
  }),
  aggregate('anyHeavy(T): T', 'A frequent value.', anyValue('first')),
  aggregate(
    'argMin(T, any): T',
    'The first argument of the row with the smallest second one.',
    argExtreme(sql`min`),
  ),
  aggregate(
    'argMax(T, any): T',
    'The first argument of the row with the largest second one.',
    argExtreme(sql`max`),
  ),
  aggregate('uniq(any, any...): integer', 'Number of distinct values, counted exactly here.', countDistinct, {
    sorts: true,
    distinct: 'without_over',
  }),
  aggregate('uniqExact(any, any...): integer', 'Number of distinct values, counted exactly.', countDistinct, {
    sorts: true,
    distinct: 'without_over',
  }),
  aggregate(
    'uniqHLL12(any, any...): integer',
    'Number of distinct values, counted exactly here.',
    countDistinct,
    { sorts: true, distinct: 'without_over' },
  ),
  standardAggregate('every(boolean): boolean', 'Whether all values are true.', 'every($1)'),
];

/** Skips nulls in the frame unless RESPECT NULLS is given; PostgreSQL has no IGNORE NULLS. */
function valueOf(
  site: AggregateCallSite,
  plain: Sql,
  pick: (values: Sql) => Sql,
): ReturnType<AggregateEmitter> {
  const value = argument(site, 0);
  const type = withNull(site.returnType);
  if (!value.type.nullable) return { sql: site.over(plain), type };
  if (site.node.nulls === 'respect') return { sql: site.over(plain), type };
  const element =
    isComposite(value.type) || value.type.kind === 'json' ? sql`(${value.sql})::jsonb` : value.sql;
  const values = site.over(sql`array_agg(${element})`, sql`${value.sql} is not null`);
  return { sql: pick(values), type };
}

const firstValue: AggregateEmitter = (site) =>
  valueOf(site, sql`first_value(${argument(site, 0).sql})`, (values) => sql`(${values})[1]`);

const lastValue: AggregateEmitter = (site) =>
  valueOf(
    site,
    sql`last_value(${argument(site, 0).sql})`,
    (values) => sql`(${values})[cardinality(${values})]`,
  );

/** Window functions, which require OVER. */
export const windowFunctions: readonly FunctionDefinition[] = [
  windowFunction('row_number(): integer', 'The number of the row.', 'row_number()'),
  windowFunction('rank(): integer', 'The rank, with gaps after equal rows.', 'rank()'),
  windowFunction('dense_rank(): integer', 'The rank without gaps.', 'dense_rank()'),
  windowFunction('lag(T, integer?, T?): T', 'The value of a preceding row.', neighborRow('lag')),
  windowFunction('lead(T, integer?, T?): T', 'The value of a following row.', neighborRow('lead')),
  windowFunction(
    'lagInFrame(T, integer?, T?): T',
    'The value of a preceding row within the frame.',
    neighborRow('lag'),
    { ranges: [{ index: 1, min: 0 }] },
  ),
  windowFunction(
    'leadInFrame(T, integer?, T?): T',
    'The value of a following row within the frame.',
    neighborRow('lead'),
    { ranges: [{ index: 1, min: 0 }] },
  ),
  windowFunction('first_value(T): T', 'The first non-null value of the frame.', firstValue),
  windowFunction('last_value(T): T', 'The last non-null value of the frame.', lastValue),
  windowFunction('nth_value(T, integer): T', 'The value of the n-th row of the frame.', nthValue, {
    ranges: [{ index: 1, min: 1 }],
  }),
];
