import { sql, type Sql } from '../../sql.ts';
import { scalar } from '../../types.ts';
import { postgresType } from '../json_values.ts';
import { argument, type Emitter, piece } from './site.ts';

const asFloat = (value: Sql): Sql => sql`(${value})::float8`;

const intDiv: Emitter = (site) => ({
  sql: sql`(div((${piece(site, 0)})::numeric, nullif((${piece(site, 1)})::numeric, 0)))::int8`,
  type: scalar('integer', true),
});

const rounded =
  (name: Sql): Emitter =>
  (site) => {
    const { type, sql: value } = argument(site, 0);
    if (site.values[1] === undefined) return sql`(${name}(${value}))::${postgresType(type)}`;
    const digits = sql`(${piece(site, 1)})::int4`;
    const scaled = sql`10::numeric ^ ${digits}`;
    const made =
      site.name.startsWith('round') || site.name.startsWith('trunc')
        ? sql`${name}((${value})::numeric, ${digits})`
        : sql`(${name}((${value})::numeric * (${scaled})) / (${scaled}))`;
    const isFinite = type.kind === 'float' ? sql`abs(${value}) < 'Infinity'::float8` : sql`true`;
    return sql`(case when ${isFinite} then (${made})::${postgresType(type)} else ${value} end)`;
  };

/** Rounding of floats goes to even halves in PostgreSQL too; numerics go away from zero. */
const bankers: Emitter = (site) => {
  const { type, sql: value } = argument(site, 0);
  if (site.values[1] === undefined) return sql`(round((${value})::float8))::${postgresType(type)}`;
  const scaled = sql`(10::float8 ^ (${piece(site, 1)})::float8)`;
  return sql`(round((${value})::float8 * ${scaled}) / ${scaled})::${postgresType(type)}`;
};

const isNotNumber = (value: Sql): Sql => sql`(${asFloat(value)} = 'NaN'::float8)`;
const isInfinite = (value: Sql): Sql => sql`(abs(${asFloat(value)}) = 'Infinity'::float8)`;

const ifNotFinite: Emitter = (site) => {
  const [value, other] = [asFloat(piece(site, 0)), asFloat(piece(site, 1))];
  return {
    sql: sql`(case when abs(${value}) < 'Infinity'::float8 or ${value} is null then ${value} else ${other} end)`,
    type: scalar('float', argument(site, 0).type.nullable),
  };
};

const two =
  (name: Sql): Emitter =>
  (site) =>
    sql`${name}(${asFloat(piece(site, 0))}, ${asFloat(piece(site, 1))})`;

/** Logarithms of zero and of what is negative are no error. */
const logarithm =
  (make: (value: Sql) => Sql): Emitter =>
  (site) => {
    const value = asFloat(piece(site, 0));
    return sql`(case when ${value} > 0 then ${make(value)} when ${value} = 0 then '-Infinity'::float8 when ${value} < 0 then 'NaN'::float8 end)`;
  };

const greatCircleDistance: Emitter = (site) => {
  const radians = (place: number): Sql => sql`radians(${asFloat(piece(site, place))})`;
  const [lon1, lat1, lon2, lat2] = [radians(0), radians(1), radians(2), radians(3)];
  return sql`(2 * 6371008.8 * asin(least(1, sqrt(sin((${lat2} - ${lat1}) / 2) ^ 2 + cos(${lat1}) * cos(${lat2}) * sin((${lon2} - ${lon1}) / 2) ^ 2))))::float8`;
};

export const numberEmitters: Readonly<Record<string, Emitter>> = {
  intDiv,
  floor: rounded(sql`floor`),
  ceil: rounded(sql`ceil`),
  round: rounded(sql`round`),
  trunc: rounded(sql`trunc`),
  roundBankers: bankers,
  abs: (site) => sql`abs(${piece(site, 0)})`,
  log: logarithm((value) => sql`ln(${value})`),
  ln: logarithm((value) => sql`ln(${value})`),
  log2: logarithm((value) => sql`(ln(${value}) / ln(2::float8))`),
  log10: logarithm((value) => sql`log(${value})`),
  sqrt: (site) => {
    const value = asFloat(piece(site, 0));
    return sql`(case when ${value} < 0 then 'NaN'::float8 else sqrt(${value}) end)`;
  },
  max2: two(sql`greatest`),
  min2: two(sql`least`),
  isNaN: (site) => isNotNumber(piece(site, 0)),
  isInfinite: (site) => isInfinite(piece(site, 0)),
  isFinite: (site) => sql`(abs(${asFloat(piece(site, 0))}) < 'Infinity'::float8)`,
  ifNotFinite,
  bitTest: (site) => sql`((${piece(site, 0)} >> (${piece(site, 1)})::int4) & 1)`,
  bitCount: (site) => sql`bit_count((${piece(site, 0)})::bit(64))`,
  greatCircleDistance,
};
