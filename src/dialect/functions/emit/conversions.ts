import { castValue } from '../../compile/casts.ts';
import {
  argument,
  type CallSite,
  type Emitted,
  type Emitter,
  argumentNode,
  argumentSql,
} from '../../compile/functions/call_site.ts';
import { toJson } from '../../compile/json_values.ts';
import { castStringTo } from '../../compile/string_casts.ts';
import type { Value } from '../../resolve/value.ts';
import { bind, sql, type Sql } from '../../sql.ts';
import { nameOfType, scalar, type ScalarKind, type Type, withNull } from '../../types.ts';
import { languageNames } from './language_names.ts';
import { decodeUtf8 } from './bytes.ts';
import { computeOnce } from '../../compile/compute_once.ts';
import { formattedText } from './formatted_text.ts';
import { typeFromLiteral } from './named_types.ts';
import { zoneAt } from './zones.ts';

/** Casts a value to another type, or null. */
function convert(site: CallSite, value: Value, to: Type): Value {
  return castValue(value, to, argumentNode(site, 0), site.statement);
}

/** Null for unreadable values and for fractions that an integer would lose. */
const toInteger: Emitter = (site) => {
  const value = argument(site, 0);
  const type = scalar('integer', true);
  if (value.type.kind === 'string') return { sql: integerFromString(value), type };
  if (value.type.kind !== 'float' && value.type.kind !== 'decimal')
    return convert(site, value, scalar('integer'));
  return {
    sql: computeOnce(
      [{ ...value, sql: sql`(${value.sql})::float8` }],
      (x = sql``) =>
        sql`(case when ${x} between -9.2e18 and 9.2e18 and ${x} = trunc(${x}) then ${x}::int8 end)`,
    ),
    type,
  };
};

/** Nineteen digits may exceed 64 bits; CASE prevents that cast. */
const integerFromString = (value: Value): Sql =>
  computeOnce(
    [value],
    (text = sql``) => sql`(case when ${text} ~ '^[-+]?[0-9]{1,18}$' then (${text})::int8
      when ${text} ~ '^[-+]?[0-9]{1,40}$' then case when (${text})::numeric between -9223372036854775808 and 9223372036854775807 then (${text})::int8 end end)`,
  );

/**
 * Overflow yields infinity and underflow zero, where a PostgreSQL cast would fail. Common numbers and strings
 * without digits are checked first, because a pattern that counts digits is ten times slower.
 */
export const floatFromString = (value: Value): Sql =>
  computeOnce(
    [value],
    (
      text = sql``,
    ) => sql`(case when ${text} ~ '^[-+]?[0-9]+[.]?[0-9]*$' and length(${text}) <= 200 then (${text})::float8
      when ${text} ~ '[0-9]' and ${text} ~ '^[-+]?([0-9]{1,200}([.][0-9]{0,200})?|[.][0-9]{1,200})([eE][-+]?[0-9]{1,5})?$' then
      case when ${text} !~ '[eE]' and length(${text}) < 300 then (${text})::float8
      when abs((substring(lower(${text}) from 'e(.*)$'))::int4) < 100 and length(${text}) < 150 then (${text})::float8
      when (split_part(lower(${text}), 'e', 1))::float8 = 0 then 0
      when (substring(lower(${text}) from 'e(.*)$'))::int4 + log(abs((split_part(lower(${text}), 'e', 1))::float8)) > 308 then
        sign((split_part(lower(${text}), 'e', 1))::float8) * 'Infinity'::float8
      when (substring(lower(${text}) from 'e(.*)$'))::int4 + log(abs((split_part(lower(${text}), 'e', 1))::float8)) < -307 then 0
      else (${text})::float8 end
      when lower(${text}) in ('nan', '+nan', '-nan') then 'NaN'::float8
      when lower(${text}) in ('inf', '+inf', 'infinity', '+infinity') then 'Infinity'::float8
      when lower(${text}) in ('-inf', '-infinity') then '-Infinity'::float8 end)`,
  );

const toFloat: Emitter = (site) => {
  const value = argument(site, 0);
  return value.type.kind === 'string'
    ? { sql: floatFromString(value), type: scalar('float', true) }
    : convert(site, value, scalar('float'));
};

/** Replaces unreadable values by a default; null stays null. */
const orElse =
  (emitter: Emitter, kind: ScalarKind, other: (site: CallSite) => Sql): Emitter =>
  (site) => {
    const value = argument(site, 0);
    const type = scalar(kind, value.type.nullable);
    const converted = sqlOf(emitter(site));
    const plain = sql`coalesce(${converted}, ${other(site)})`;
    if (!value.type.nullable) return { sql: plain, type };
    return { sql: sql`(case when ${value.sql} is not null then ${plain} end)`, type };
  };

const sqlOf = (one: Emitted): Sql => ('type' in one ? one.sql : one);

const toDecimal: Emitter = (site) => {
  const value = argument(site, 0);
  const digits = argument(site, 1).constant;
  if (typeof digits !== 'bigint' || digits < 0n || digits > 18n)
    throw site.statement.error(
      `The scale of '${site.name}' must be an integer from 0 to 18.`,
      argumentNode(site, 1),
    );
  const decimal =
    value.type.kind === 'string'
      ? castStringTo(value.sql, scalar('decimal'), site.statement)
      : convert(site, value, scalar('decimal')).sql;
  return { sql: sql`trunc(${decimal}, ${argumentSql(site, 1)}::int4)`, type: scalar('decimal', true) };
};

const trueWords = sql`'true', 't', 'yes', 'y', 'on', 'enable', 'enabled', '1'`;
const falseWords = sql`'false', 'f', 'no', 'n', 'off', 'disable', 'disabled', '0'`;

const toBoolean: Emitter = (site) => {
  const value = argument(site, 0);
  if (value.type.kind !== 'string') return convert(site, value, scalar('boolean'));
  return {
    sql: sql`(case when lower(${value.sql}) in (${trueWords}) then true when lower(${value.sql}) in (${falseWords}) then false end)`,
    type: scalar('boolean', true),
  };
};

const toStringEmitter: Emitter = (site) => {
  const value = argument(site, 0);
  return { sql: formattedText(site, value, zoneAt(site, null)), type: scalar('string', value.type.nullable) };
};

const toUuid: Emitter = (site) => {
  const value = argument(site, 0);
  return value.type.kind === 'uuid'
    ? value
    : { ...convert(site, value, scalar('uuid')), type: scalar('uuid', true) };
};

const toJsonText: Emitter = (site) => {
  const value = argument(site, 0);
  if (value.type.kind === 'null') return { sql: sql`null::text`, type: scalar('string', true) };
  const text = sql`regexp_replace((${toJson(value.sql, value.type)})::text, '("([^"\\\\]|\\\\.)*")|[ \\n]', '\\1', 'g')`;
  return { sql: text, type: scalar('string', value.type.nullable) };
};

const toTypeName: Emitter = (site) => ({
  sql: bind(nameOfType(argument(site, 0).type), 'text'),
  type: scalar('string'),
});

const accurateCastOrNull: Emitter = (site) => {
  const to = typeFromLiteral(site, 1);
  if (to.kind === 'integer') return toInteger(site);
  if (to.kind === 'float') return toFloat(site);
  const converted = convert(site, argument(site, 0), to);
  return { sql: converted.sql, type: withNull(to) };
};

const toHex: Emitter = (site) => {
  const value = argument(site, 0);
  const type = scalar('string', value.type.nullable);
  if (value.type.kind === 'integer') {
    const digits = sql`upper(to_hex(${value.sql}))`;
    return {
      sql: computeOnce(
        [{ ...value, sql: digits }],
        (x = sql``) => sql`(repeat('0', length(${x}) % 2) || ${x})`,
      ),
      type,
    };
  }
  return { sql: sql`upper(encode(convert_to(${formattedText(site, value)}, 'UTF8'), 'hex'))`, type };
};

const unhex: Emitter = (site) => ({
  sql: computeOnce(
    [argument(site, 0)],
    (text = sql``) =>
      sql`(case when ${text} ~ '^([0-9a-fA-F]{2})*$' then ${decodeUtf8(sql`decode(${text}, 'hex')`)} end)`,
  ),
  type: scalar('string', true),
});

const languageCodeToName: Emitter = (site) => ({
  sql: sql`(${bind(languageNames, 'jsonb')} ->> lower(${argumentSql(site, 0)}))`,
  type: scalar('string', true),
});

export const conversionEmitters = {
  toInt: toInteger,
  toIntOrZero: orElse(toInteger, 'integer', () => sql`0::int8`),
  toFloat,
  toFloatOrZero: orElse(toFloat, 'float', () => sql`0::float8`),
  toFloatOrDefault: orElse(toFloat, 'float', (site) => sql`(${site.values[1]?.sql ?? sql`0`})::float8`),
  toDecimal,
  toBool: toBoolean,
  toString: toStringEmitter,
  toUUID: toUuid,
  toJSONString: toJsonText,
  toTypeName,
  accurateCastOrNull,
  hex: toHex,
  unhex,
  languageCodeToName,
} satisfies Readonly<Record<string, Emitter>>;
