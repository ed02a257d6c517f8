import { argument, type CallSite, type Emitter } from '../../compile/functions/call_site.ts';
import { rawSql, sql, type Sql } from '../../sql.ts';
import { scalar } from '../../types.ts';
import { computeOnce } from '../../compile/compute_once.ts';

type Rounding = 'floor' | 'ceil' | 'trunc' | 'round' | 'even';

/** PostgreSQL rounds halves of floats to even. */
function rounded(name: Rounding, value: Sql): Sql {
  return name === 'even' ? sql`round((${value})::float8)` : sql`${rawSql(name)}(${value})`;
}

const rounding =
  (name: Rounding): Emitter =>
  (site) => {
    const value = argument(site, 0);
    const digits = site.values[1];
    const type = value.type;
    if (type.kind === 'integer' && digits === undefined) return { sql: value.sql, type };
    if (digits === undefined)
      return {
        sql: type.kind === 'float' ? rounded(name, value.sql) : sql`(${rounded(name, value.sql)})::numeric`,
        type,
      };
    return type.kind === 'integer' ? ofInteger(name, site) : ofFraction(name, site);
  };

/** Powers of ten are exact as numeric. */
const scaleOf = (digits: Sql): Sql =>
  sql`(10::numeric ^ (case when ${digits} is not null then least(greatest(${digits}, -300), 300)::int4 end))`;

function ofInteger(name: Rounding, site: CallSite): { sql: Sql; type: ReturnType<typeof scalar> } {
  const [value, digits] = [argument(site, 0), argument(site, 1)];
  const nullable = value.type.nullable || digits.type.nullable;
  const scaled = sql`((${value.sql})::numeric * ${scaleOf(digits.sql)})`;
  const whole = name === 'even' ? sql`round((${scaled})::float8)::numeric` : sql`${rawSql(name)}(${scaled})`;
  return {
    sql: sql`(case when (${digits.sql}) >= 0 then ${value.sql} when (${digits.sql}) < -18 then 0
      when (${digits.sql}) < 0 then least(greatest(${whole} / ${scaleOf(digits.sql)}, -9223372036854775808), 9223372036854775807)::int8 end)`,
    type: scalar('integer', nullable),
  };
}

function ofFraction(name: Rounding, site: CallSite): { sql: Sql; type: ReturnType<typeof scalar> } {
  const [value, digits] = [argument(site, 0), argument(site, 1)];
  const nullable = value.type.nullable || digits.type.nullable;
  const factor = sql`(${scaleOf(sql`(abs(least(greatest(${digits.sql}, -300), 300)))`)})::float8`;
  const up = sql`(${value.sql})::float8`;
  const body = (
    x: Sql,
  ): Sql => sql`(case when ${x} in ('NaN', 'Infinity', '-Infinity') or (${digits.sql}) > 17 or abs(${x}) > 1e290 then ${x}
    when (${digits.sql}) < 0 then ${rounded(name, sql`(${x} / ${factor})`)} * ${factor}
    when (${digits.sql}) >= 0 then ${rounded(name, sql`(${x} * ${factor})`)} / ${factor} end)`;
  return {
    sql: computeOnce([{ ...value, sql: up }], (x = sql``) => body(x)),
    type: scalar('float', nullable),
  };
}

/** Rounding to a number of decimals, or before the point if negative. */
export const roundingEmitters = {
  floor: rounding('floor'),
  ceil: rounding('ceil'),
  trunc: rounding('trunc'),
  round: rounding('round'),
  roundBankers: rounding('even'),
} satisfies Readonly<Record<string, Emitter>>;
