import { computeOnce } from '../compile/compiler.ts';
import { castStringTo, castValue } from '../compile/expressions/casts.ts';
import { compactText, toJson } from '../compile/expressions/coerce.ts';
import type { Value } from '../resolve/value.ts';
import { bind, joinSql, rawSql, sql, type Sql } from '../sql.ts';
import { arrayOf, nameOfType, type ScalarKind, scalarType, type Type, withNull } from '../types.ts';
import {
  decodeUtf8,
  formattedText,
  typeFromLiteral,
  zoneAt,
  argument,
  argumentError,
  argumentNode,
  argumentSql,
  type CallSite,
  type Emitted,
  type Emitter,
  type FunctionDefinition,
  scalar,
  unsupportedFunction,
} from './function_definition.ts';

const codes =
  `aa ab af ak am ar as av ay az ba be bg bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee el en eo es et eu fa
ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is it iu ja jv ka kg ki kj kk kl km kn ko kr ks ku
kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm
rn ro ru rw sa sc sd se sg si sk sl sm sn so sq sr ss st su sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo
xh yi yo za zh zu`.split(/\s+/);

const names = new Intl.DisplayNames('en', { type: 'language' });

/** English names of ISO 639-1 languages, as a JSON object. */
const languageNames = JSON.stringify(Object.fromEntries(codes.map((code) => [code, names.of(code) ?? code])));

/** Casts a value to another type, or null. */
function convert(site: CallSite, value: Value, to: Type): Value {
  return castValue(value, to, argumentNode(site, 0), site.statement);
}

/** Null for unreadable values and for fractions that an integer would lose. */
const toInteger: Emitter = (site) => {
  const value = argument(site, 0);
  const type = scalarType('integer', true);
  if (value.type.kind === 'string') return { sql: integerFromString(value), type };
  if (value.type.kind !== 'float' && value.type.kind !== 'decimal')
    return convert(site, value, scalarType('integer'));
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
export const integerFromString = (value: Value): Sql =>
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
    ? { sql: floatFromString(value), type: scalarType('float', true) }
    : convert(site, value, scalarType('float'));
};

/** Replaces unreadable values by zero; null stays null. */
const orZero =
  (emitter: Emitter, kind: ScalarKind, zero: Sql): Emitter =>
  (site) => {
    const value = argument(site, 0);
    const type = scalarType(kind, value.type.nullable);
    const plain = sql`coalesce(${sqlOf(emitter(site))}, ${zero})`;
    if (!value.type.nullable) return { sql: plain, type };
    return { sql: sql`(case when ${value.sql} is not null then ${plain} end)`, type };
  };

/** Replaces unreadable values and null by the second argument, or by a default. */
const orDefault =
  (emitter: Emitter, to: Type, otherwise: Sql): Emitter =>
  (site) => {
    const other = site.values[1];
    const nullable = other?.type.nullable ?? false;
    const replacement =
      other === undefined ? otherwise : convert({ ...site, nodes: site.nodes.slice(1) }, other, to).sql;
    const converted = sqlOf(emitter({ ...site, values: site.values.slice(0, 1) }));
    return { sql: sql`coalesce(${converted}, ${replacement})`, type: withNull(to, nullable) };
  };

const sqlOf = (one: Emitted): Sql => ('type' in one ? one.sql : one);

const toDecimal: Emitter = (site) => {
  const value = argument(site, 0);
  const digits = argument(site, 1).constant;
  if (typeof digits !== 'bigint' || digits < 0n || digits > 18n)
    throw argumentError(site, 1, `The scale of '${site.name}' must be an integer from 0 to 18.`);
  const decimal =
    value.type.kind === 'string'
      ? castStringTo(value.sql, scalarType('decimal'), site.statement)
      : convert(site, value, scalarType('decimal')).sql;
  return { sql: sql`trunc(${decimal}, ${argumentSql(site, 1)}::int4)`, type: scalarType('decimal', true) };
};

const trueWords = sql`'true', 't', 'yes', 'y', 'on', 'enable', 'enabled', '1'`;
const falseWords = sql`'false', 'f', 'no', 'n', 'off', 'disable', 'disabled', '0'`;

const toBoolean: Emitter = (site) => {
  const value = argument(site, 0);
  if (value.type.kind !== 'string') return convert(site, value, scalarType('boolean'));
  return {
    sql: sql`(case when lower(${value.sql}) in (${trueWords}) then true when lower(${value.sql}) in (${falseWords}) then false end)`,
    type: scalarType('boolean', true),
  };
};

const toStringEmitter: Emitter = (site) => {
  const value = argument(site, 0);
  return {
    sql: formattedText(site, value, zoneAt(site, null)),
    type: scalarType('string', value.type.nullable),
  };
};

const toUuid: Emitter = (site) => {
  const value = argument(site, 0);
  return value.type.kind === 'uuid'
    ? value
    : { ...convert(site, value, scalarType('uuid')), type: scalarType('uuid', true) };
};

const toJsonText: Emitter = (site) => {
  const value = argument(site, 0);
  if (value.type.kind === 'null') return { sql: sql`null::text`, type: scalarType('string', true) };
  return { sql: compactText(toJson(value.sql, value.type)), type: scalarType('string', value.type.nullable) };
};

const toTypeName: Emitter = (site) => ({
  sql: bind(nameOfType(argument(site, 0).type), 'text'),
  type: scalarType('string'),
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
  const type = scalarType('string', value.type.nullable);
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
  type: scalarType('string', true),
});

const languageCodeToName: Emitter = (site) => ({
  sql: sql`(${bind(languageNames, 'jsonb')} ->> lower(${argumentSql(site, 0)}))`,
  type: scalarType('string', true),
});

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
      type: scalarType('string', value.type.nullable),
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
    throw argumentError(
      site,
      1,
      `The largest unit of '${site.name}' must be one of ${timeUnits.map(([name]) => `${name}s`).join(', ')}.`,
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
    type: scalarType('string', value.type.nullable),
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
    type: scalarType('string', true),
  };
};

const zeroUuid = sql`'00000000-0000-0000-0000-000000000000'::uuid`;

const octet = '(25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])';
const addressPattern = bind(`^(${octet}[.]){3}${octet}$`, 'text');
const group = '[0-9a-fA-F]{1,4}';
const address6Pattern = bind(
  `^(${[
    `(${group}:){7}${group}`,
    `(${group}:){1,7}:`,
    ...[1, 2, 3, 4, 5, 6].map((after) => `(${group}:){1,${7 - after}}(:${group}){1,${after}}`),
    `:((:${group}){1,7}|:)`,
  ].join('|')})$`,
  'text',
);

/** PostgreSQL would fail for texts that are no addresses, so patterns check them first. */
const isAddressInRange: Emitter = (site) => ({
  sql: computeOnce([argument(site, 0), argument(site, 1)], (address = sql``, network = sql``) => {
    const prefix = sql`substring(${network} from '/([0-9]{1,3})$')::int4`;
    const start = sql`split_part(${network}, '/', 1)`;
    const contains = sql`(set_masklen((${start})::inet, ${prefix}) >>= (${address})::inet)`;
    const isOf = (pattern: Sql): Sql => sql`${address} ~ ${pattern}`;
    return sql`(case when ${start} ~ ${addressPattern} and ${prefix} <= 32 then case when ${isOf(addressPattern)} then ${contains} when ${isOf(address6Pattern)} then false end
      when ${start} ~ ${address6Pattern} and ${prefix} <= 128 then case when ${isOf(address6Pattern)} then ${contains} when ${isOf(addressPattern)} then false end end)`;
  }),
  type: scalarType('boolean', true),
});

/** The first numbers of a text that are joined by dots, each limited to what PostgreSQL can store. */
const sortableVersion: Emitter = (site) => ({
  sql: sql`(select coalesce(jsonb_agg(case when part.text ~ '^[0-9]{1,18}$' then (part.text)::int8 else 0 end order by part.at), '[]'::jsonb)
    from unnest(string_to_array(substring(${argumentSql(site, 0)} from '([0-9]+(?:[.][0-9]+)+)'), '.')) with ordinality as part(text, at))`,
  type: arrayOf(scalarType('integer')),
});

/** Type conversions. Those without a suffix return null for unreadable values. */
export const conversionFunctions: readonly FunctionDefinition[] = [
  scalar('toInt(any): integer', 'The value as an integer, or null.', toInteger),
  scalar(
    'toIntOrZero(any): integer',
    'The value as an integer, or 0.',
    orZero(toInteger, 'integer', sql`0::int8`),
  ),
  scalar(
    'toIntOrDefault(any, integer?): integer',
    'The value as an integer, or another.',
    orDefault(toInteger, scalarType('integer'), sql`0::int8`),
  ),
  scalar('toFloat(any): float', 'The value as a number, or null.', toFloat),
  scalar(
    'toFloatOrZero(any): float',
    'The value as a number, or 0.',
    orZero(toFloat, 'float', sql`0::float8`),
  ),
  scalar(
    'toFloatOrDefault(any, number?): float',
    'The value as a number, or another.',
    orDefault(toFloat, scalarType('float'), sql`0::float8`),
  ),
  scalar('toDecimal(any, integer): decimal', 'The value as a decimal number, or null.', toDecimal),
  scalar('toString(any): string', 'The value as a string.', toStringEmitter),
  scalar('toBool(any): boolean', 'The value as true or false.', toBoolean),
  scalar('toUUID(any): uuid', 'The value as a UUID, or null.', toUuid),
  scalar(
    'toUUIDOrZero(any): uuid',
    'The value as a UUID, or that of zeros.',
    orZero(toUuid, 'uuid', zeroUuid),
  ),
  scalar(
    'toUUIDOrDefault(any, uuid?): uuid',
    'The value as a UUID, or another.',
    orDefault(toUuid, scalarType('uuid'), zeroUuid),
  ),
  scalar(
    'sortableSemVer(string): array(integer)',
    'The numbers of a version such as 1.10.2, which sort as versions do.',
    sortableVersion,
  ),
  scalar(
    'isIPAddressInRange(string, string): boolean',
    'Whether an address is in a network such as 10.0.0.0/8; null if either is not valid.',
    isAddressInRange,
  ),
  scalar('IPv4NumToString(integer): string', 'A number as an IPv4 address.', (site) => {
    const address = argument(site, 0);
    const octet = (shift: number): Sql => sql`((${address.sql} >> ${rawSql(String(shift))}) & 255)::text`;
    return {
      sql: sql`(${octet(24)} || '.' || ${octet(16)} || '.' || ${octet(8)} || '.' || ${octet(0)})`,
      type: scalarType('string', address.type.nullable),
    };
  }),
  scalar('IPv4StringToNum(string): integer', 'An IPv4 address as a number, or null.', (site) => ({
    sql: computeOnce(
      [argument(site, 0)],
      (text = sql``) =>
        sql`(case when ${text} ~ ${addressPattern} then ((${text})::inet - '0.0.0.0'::inet) end)`,
    ),
    type: scalarType('integer', true),
  })),
  scalar('toJSONString(any): string', 'The value as a JSON string.', toJsonText),
  scalar('toTypeName(any): string', 'The name of the type of a value.', toTypeName),
  scalar('accurateCastOrNull(any, string): any', 'The value as another type, or null.', accurateCastOrNull),
  scalar('hex(any): string', 'A number or the bytes of a string as hexadecimal digits.', toHex),
  scalar('unhex(string): string', 'The bytes of hexadecimal digits.', unhex),
  unsupportedFunction(
    'cityHash64',
    'A hash of the values.',
    'PostgreSQL cannot compute this hash; use md5(…) instead.',
  ),
  scalar(
    'formatReadableSize(number): string',
    'A number of bytes in human-readable form.',
    inReadableUnits([' B', ' KiB', ' MiB', ' GiB', ' TiB', ' PiB', ' EiB', ' ZiB', ' YiB'], 1_024),
  ),
  scalar(
    'formatReadableQuantity(number): string',
    'A number in human-readable form.',
    inReadableUnits(['', ' thousand', ' million', ' billion', ' trillion', ' quadrillion'], 1_000),
  ),
  scalar(
    'formatReadableTimeDelta(number, string?): string',
    'A number of seconds in human-readable form.',
    formatReadableTimeDelta,
  ),
  scalar('bar(number, number, number, integer?): string', 'A bar drawn with characters.', bar, {
    ranges: [{ index: 3, min: 1, max: 1000 }],
  }),
  scalar('languageCodeToName(string): string', 'The name of a language.', languageCodeToName),
];
