import { computeOnce } from '../compile/compiler.ts';
import { concatenation } from '../many_arguments.ts';
import { bind, joinSql, rawSql, sql, type Sql } from '../sql.ts';
import { isUnmatched, nameOfType, scalarType, type Type } from '../types.ts';
import {
  clamped,
  constantNumber,
  decodeUtf8,
  formattedText,
  maxCharacters,
  withMaxSize,
  zoneAt,
  argument,
  argumentError,
  argumentSql,
  type CallSite,
  type Emitter,
  type FunctionDefinition,
  isNullable,
  optionalArgumentSql,
  scalar,
  standardScalar,
} from './function_definition.ts';

const nullableString = (site: CallSite): Type => scalarType('string', isNullable(site));

const stringFunction =
  (make: (...fragments: readonly Sql[]) => Sql): Emitter =>
  (site) => ({ sql: make(...site.values.map((value) => value.sql)), type: nullableString(site) });

const maxLength = rawSql(String(maxCharacters));
const boundedCount = (number: Sql): Sql => clamped(number, sql`0`, maxLength);

/** Changes only ASCII letters, independent of the database's locale. */
const withCLocale = (text: Sql): Sql => sql`((${text}) collate "C")`;

const sizeOf = (site: CallSite): Sql => {
  const { type, sql: value } = argument(site, 0);
  switch (type.kind) {
    case 'string':
    case 'null':
      return sql`(octet_length(${value}))::int8`;
    case 'array':
      return sql`(jsonb_array_length(${value}))::int8`;
    case 'map':
      return sql`(select count(*) from jsonb_object_keys(${value}))`;
    default:
      throw argumentError(
        site,
        0,
        `Function '${site.name}' expects a string, an array or a map, found ${nameOfType(type)}.`,
        'Convert it with toString(…).',
      );
  }
};

const emptiness =
  (sign: Sql): Emitter =>
  (site) => {
    const { type, sql: value } = argument(site, 0);
    const missing = isUnmatched(type);
    const of = (fragment: Sql): ReturnType<Emitter> => ({
      sql: missing ? sql`coalesce(${fragment}, 0 ${sign} 0)` : fragment,
      type: scalarType('boolean', type.nullable && !missing),
    });
    if (type.kind === 'uuid') return of(sql`(${value} ${sign} '00000000-0000-0000-0000-000000000000'::uuid)`);
    if (type.kind === 'string') return of(sql`(${value} ${sign} '')`);
    return of(sql`(${sizeOf(site)} ${sign} 0)`);
  };

const offsetOf = (number: Sql): Sql => clamped(number, sql`-1000000000`, sql`1000000000`);

/**
 * Offsets start at 1, or count from the end if negative. A negative length excludes that many characters at the end.
 */
const substring: Emitter = (site) => {
  const [text, from] = [argument(site, 0), argument(site, 1)];
  const length = optionalArgumentSql(site, 2);
  return {
    sql: computeOnce([text, { ...from, sql: offsetOf(from.sql) }], (t = sql``, o = sql``) => {
      const start = sql`(case when ${o} > 0 then ${o} else char_length(${t}) + ${o} + 1 end)`;
      if (length === undefined)
        return sql`(case when ${o} <> 0 then substr(${t}, ${start}) when ${t} is not null and ${o} is not null then '' end)`;
      const n = offsetOf(length);
      const size = sql`(case when ${n} >= 0 then ${n} when ${n} < 0 then greatest(char_length(${t}) + ${n} - ${start} + 1, 0) end)`;
      return sql`(case when ${o} <> 0 then substr(${t}, ${start}, ${size}) when ${t} is not null and ${o} is not null and ${n} is not null then '' end)`;
    }),
    type: nullableString(site),
  };
};

const reverse: Emitter = (site) => {
  const { type, sql: value } = argument(site, 0);
  if (type.kind === 'string' || type.kind === 'null')
    return { sql: sql`reverse(${value})`, type: scalarType('string', type.nullable) };
  if (type.kind !== 'array')
    throw argumentError(
      site,
      0,
      `Function '${site.name}' expects a string or an array, found ${nameOfType(type)}.`,
    );
  return {
    sql: sql`(select coalesce(jsonb_agg(item.v order by item.at desc), '[]'::jsonb) from jsonb_array_elements(${value}) with ordinality as item(v, at))`,
    type,
  };
};

const trimmed = (call: Sql): Emitter =>
  stringFunction((text = sql``, characters = sql`' '`) => sql`${call}(${text}, ${characters})`);

const padded =
  (call: Sql): Emitter =>
  (site) => {
    const filling = optionalArgumentSql(site, 2);
    return {
      sql: sql`${call}(${argumentSql(site, 0)}, ${boundedCount(argumentSql(site, 1))}, ${filling === undefined ? sql`' '` : sql`coalesce(nullif(${filling}, ''), ' ')`})`,
      type: nullableString(site),
    };
  };

/** Concatenates all values as strings; null becomes empty. Also the operator `||`. */
const concat: Emitter = (site) => ({
  sql: concatenation(
    site.values.map((value, index) => formattedText(site, value, zoneAt(site, null, index))),
  ),
  type: scalarType('string'),
});

const concatWithSeparator: Emitter = (site) => {
  const [separator, ...others] = site.values;
  if (separator === undefined || others.length === 0)
    return { sql: sql`''::text`, type: scalarType('string') };
  const texts = others.map((value, index) => formattedText(site, value, zoneAt(site, null, index + 1)));
  return {
    sql: sql`(${texts.slice(1).reduce((joined, text) => sql`${joined} || ${separator.sql} || ${text}`, texts[0] ?? sql``)})`,
    type: nullableString(site),
  };
};

/** `{}` takes the next value, `{0}` the one with that index; `{{` is a brace. */
const format: Emitter = (site) => {
  const pattern = argument(site, 0).constant;
  if (typeof pattern !== 'string')
    throw argumentError(site, 0, `The pattern of '${site.name}' must be a string literal.`);
  let next = 1;
  const fragments = [...pattern.matchAll(/\{\{|\}\}|\{(\d{0,4})\}|[^{}]+|[{}]/g)].map(([matched, index]) => {
    if (matched === '{{' || matched === '}}') return bind(matched.slice(1), 'text');
    if (index === undefined) return bind(matched, 'text');
    const value = site.values[index === '' ? next : Number(index) + 1];
    next += 1;
    if (value === undefined)
      throw argumentError(
        site,
        0,
        `The pattern of '${site.name}' has more placeholders than there are values.`,
      );
    return formattedText(site, value);
  });
  return {
    sql: fragments.length === 0 ? sql`''::text` : sql`(${joinSql(fragments, ' || ')})`,
    type: nullableString(site),
  };
};

const base64Decode: Emitter = (site) => ({
  sql: computeOnce(
    [argument(site, 0)],
    (text = sql``) =>
      sql`(case when ${text} ~ '^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$' then ${decodeUtf8(sql`decode(${text}, 'base64')`)} end)`,
  ),
  type: scalarType('string', true),
});

/** Parts count from 1, or from the end if negative. PostgreSQL would fail for part 0. */
const splitPart: Emitter = (site) => {
  const index = argument(site, 2);
  if (index.constant === 0n)
    throw argumentError(site, 2, `Parts of '${site.name}' count from one, not from zero.`);
  const at = offsetOf(index.sql);
  return {
    sql: sql`(case when ${index.sql} <> 0 then split_part(${argumentSql(site, 0)}, ${argumentSql(site, 1)}, ${at}) end)`,
    type: scalarType('string', isNullable(site) || index.constant === undefined),
  };
};

/** Functions of strings. */
export const stringFunctions: readonly FunctionDefinition[] = [
  standardScalar('length(any): integer', 'Number of bytes of a string, or of items of an array.', (site) => ({
    sql: sizeOf(site),
    type: scalarType('integer', argument(site, 0).type.nullable),
  })),
  scalar('lengthUTF8(string): integer', 'Number of characters of a string.', 'char_length($1)'),
  standardScalar(
    'lower(string): string',
    'The string in lower case.',
    stringFunction((text = sql``) => sql`lower(${withCLocale(text)})`),
  ),
  standardScalar(
    'upper(string): string',
    'The string in upper case.',
    stringFunction((text = sql``) => sql`upper(${withCLocale(text)})`),
  ),
  scalar('lowerUTF8(string): string', 'The string in lower case, beyond ASCII too.', 'lower($1)'),
  scalar('upperUTF8(string): string', 'The string in upper case, beyond ASCII too.', 'upper($1)'),
  standardScalar('concat(any...): string', 'The values as one string, without nulls.', concat),
  scalar(
    'concatWithSeparator(string, any...): string',
    'The values as one string, joined by a separator.',
    concatWithSeparator,
  ),
  standardScalar(
    'substring(string, integer, integer?): string',
    'A substring; offsets start at 1.',
    substring,
  ),
  standardScalar(
    'left(string, integer): string',
    'The start of a string.',
    stringFunction((text = sql``, number = sql``) => sql`left(${text}, ${offsetOf(number)})`),
  ),
  standardScalar(
    'right(string, integer): string',
    'The end of a string.',
    stringFunction((text = sql``, number = sql``) => sql`right(${text}, ${offsetOf(number)})`),
  ),
  standardScalar('reverse(any): any', 'A string or an array reversed.', reverse),
  standardScalar(
    'repeat(string, integer): string',
    'A string repeated.',
    withMaxSize(
      maxCharacters,
      'characters',
      (site) => constantNumber(site, 1),
      stringFunction(
        (text = sql``, number = sql``) =>
          sql`repeat(${text}, ${clamped(number, sql`0`, sql`${maxLength} / greatest(octet_length(${text}), 1)`)})`,
      ),
    ),
  ),
  standardScalar(
    'trim(string, string?): string',
    'A string without leading and trailing spaces.',
    trimmed(sql`btrim`),
  ),
  scalar('trimLeft(string, string?): string', 'A string without leading spaces.', trimmed(sql`ltrim`)),
  scalar('trimRight(string, string?): string', 'A string without trailing spaces.', trimmed(sql`rtrim`)),
  scalar(
    'leftPad(string, integer, string?): string',
    'A string padded on the left.',
    withMaxSize(maxCharacters, 'characters', (site) => constantNumber(site, 1), padded(sql`lpad`)),
    { ranges: [{ index: 1, min: 0 }] },
  ),
  scalar(
    'rightPad(string, integer, string?): string',
    'A string padded on the right.',
    withMaxSize(maxCharacters, 'characters', (site) => constantNumber(site, 1), padded(sql`rpad`)),
    { ranges: [{ index: 1, min: 0 }] },
  ),
  standardScalar(
    'split_part(string, string, integer): string',
    'A part of a string between occurrences of a separator.',
    splitPart,
  ),
  scalar('empty(any): boolean', 'Whether a string or an array is empty.', emptiness(sql`=`)),
  scalar('notEmpty(any): boolean', 'Whether a string or an array is not empty.', emptiness(sql`<>`)),
  scalar('format(string, any...): string', 'A string with values in place of {}.', format),
  standardScalar(
    'initcap(string): string',
    'The string with each word capitalized.',
    stringFunction((text = sql``) => sql`initcap(${withCLocale(text)})`),
  ),
  standardScalar('ascii(string): integer', 'The code of the first character.', (site) => ({
    sql: sql`(ascii(${argumentSql(site, 0)}))::int8`,
    type: scalarType('integer', argument(site, 0).type.nullable),
  })),
  scalar(
    'base64Encode(string): string',
    'The bytes of a string in base64.',
    stringFunction(
      (text = sql``) => sql`replace(encode(convert_to(${text}, 'UTF8'), 'base64'), chr(10), '')`,
    ),
  ),
  scalar('base64Decode(string): string', 'The bytes decoded from base64.', base64Decode),
  scalar(
    'md5(string): string',
    'The MD5 hash of a string.',
    stringFunction((text = sql``) => sql`md5(${text})`),
  ),
];
