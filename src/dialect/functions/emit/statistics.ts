import {
  type AggregateEmitter,
  type AggregateCallSite,
  argument,
  argumentSql,
} from '../../compile/functions/call_site.ts';
import { bind, sql, type Sql } from '../../sql.ts';
import { scalar } from '../../types.ts';

/** NaN for too few values; null for nullable arguments, as in ClickHouse. */
function orNaN(site: AggregateCallSite, value: Sql): ReturnType<AggregateEmitter> {
  const nullable = site.values.some(({ type }) => type.nullable);
  return nullable
    ? { sql: sql`(${value})::float8`, type: scalar('float', true) }
    : { sql: sql`coalesce((${value})::float8, 'NaN'::float8)`, type: scalar('float') };
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
      ? { sql: value, type: scalar('integer', true) }
      : { sql: sql`coalesce(${value}, ${none})`, type: scalar('integer') };
  };

/** Numeric aggregates with other names in PostgreSQL, or with other results for no rows. */
export const statisticEmitters = {
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
