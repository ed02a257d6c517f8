import { argument, type Emitter, argumentNode } from '../../compile/functions/call_site.ts';
import { bind, joinSql, sql, type Sql } from '../../sql.ts';
import { scalar } from '../../types.ts';
import { computeOnce } from '../../compile/compute_once.ts';

const numbers = (x: Sql, pattern: string): Sql => sql`to_char(${x}, ${bind(pattern, 'text')})`;

/** Formats with the largest unit that fits and two decimals. */
function inUnits(x: Sql, units: readonly string[], base: number): Sql {
  const branches = units.map((unit, power) => {
    const isLast = power === units.length - 1;
    const size = bind(String(base ** power), 'float8');
    const text = sql`${numbers(sql`(${x} / ${size})::numeric`, 'FM999999999999999999990.00')} || ${bind(unit, 'text')}`;
    return isLast
      ? sql`else ${text}`
      : sql`when abs(${x}) < ${bind(String(base ** (power + 1)), 'float8')} then ${text}`;
  });
  return sql`(case when ${x} in ('NaN', 'Infinity', '-Infinity') then lower((${x})::text) ${joinSql(branches, ' ')} end)`;
}

const inReadableUnits =
  (units: readonly string[], base: number): Emitter =>
  (site) => {
    const value = argument(site, 0);
    return {
      sql: computeOnce([{ ...value, sql: sql`(${value.sql})::float8` }], (x = sql``) =>
        inUnits(x, units, base),
      ),
      type: scalar('string', value.type.nullable),
    };
  };

const timeUnits: readonly (readonly [string, number])[] = [
  ['year', 31_536_000],
  ['month', 2_635_200],
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
];

/** Years, months and so on, without zero parts. */
const formatReadableTimeDelta: Emitter = (site) => {
  const value = argument(site, 0);
  const largest = site.values[1]?.constant ?? 'years';
  const from = timeUnits.findIndex(([name]) => largest === `${name}s`);
  if (from === -1)
    throw site.statement.error(
      `The largest unit of '${site.name}' must be one of ${timeUnits.map(([name]) => `${name}s`).join(', ')}.`,
      argumentNode(site, 1),
    );
  const used = timeUnits.slice(from);
  const parts = (x: Sql): Sql => {
    const fragments = used.map(([name, size], index) => {
      const above = used[index - 1]?.[1];
      const rest =
        above === undefined
          ? sql`${x}`
          : remainderOf(
              x,
              used.slice(0, index).map(([, length]) => length),
            );
      const count = sql`trunc(${rest} / ${bind(String(size), 'int8')})`;
      return sql`case ${count} when 0 then null when 1 then ${bind(`1 ${name}`, 'text')} else ${count} || ${bind(` ${name}s`, 'text')} end`;
    });
    const words = sql`array_remove(array[${joinSql(fragments, ', ')}], null)`;
    return sql`(select case when ${x} is null then null when cardinality(said.w) = 0 then '0 seconds' when cardinality(said.w) = 1 then sign_of.s || said.w[1]
      else sign_of.s || array_to_string(said.w[1:cardinality(said.w) - 1], ', ') || ' and ' || said.w[cardinality(said.w)] end
      from (select ${words} as w) as said, (select case when ${value.sql} < 0 then '-' else '' end as s) as sign_of)`;
  };
  return {
    sql: computeOnce([{ ...value, sql: sql`trunc(abs((${value.sql})::numeric))` }], (x = sql``) => parts(x)),
    type: scalar('string', value.type.nullable),
  };
};

const remainderOf = (x: Sql, sizes: readonly number[]): Sql =>
  sizes.reduce((rest, size) => sql`(${rest} % ${bind(String(size), 'int8')})`, x);

/** Draws a bar with eighths of a block. */
const bar: Emitter = (site) => {
  const [x, low, high] = [0, 1, 2].map((index) => sql`(${argument(site, index).sql})::float8`);
  const width = sql`least(greatest(${site.values[3]?.sql ?? sql`80`}, 0), 1000)`;
  if (x === undefined || low === undefined || high === undefined) throw new Error('bar has three arguments.');
  const share = sql`least(greatest((${x} - ${low}) / nullif(${high} - ${low}, 0), 0), 1)`;
  const eighths = sql`floor(${share} * ${width} * 8 + 1e-9)::int4`;
  return {
    sql: sql`(select repeat('█', drawn.n / 8) || substr('▏▎▍▌▋▊▉', drawn.n % 8, (drawn.n % 8 > 0)::int4) from (select ${eighths} as n) as drawn)`,
    type: scalar('string', true),
  };
};

/** Human-readable numbers. */
export const numberFormattingEmitters = {
  formatReadableSize: inReadableUnits(
    [' B', ' KiB', ' MiB', ' GiB', ' TiB', ' PiB', ' EiB', ' ZiB', ' YiB'],
    1_024,
  ),
  formatReadableQuantity: inReadableUnits(
    ['', ' thousand', ' million', ' billion', ' trillion', ' quadrillion'],
    1_000,
  ),
  formatReadableTimeDelta,
  bar,
} satisfies Readonly<Record<string, Emitter>>;
