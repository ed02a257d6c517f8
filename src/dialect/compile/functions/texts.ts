import { bind, commaList, ownText, sql, type Sql } from '../../sql.ts';
import { arrayOf, scalar } from '../../types.ts';
import { toText } from '../to_text.ts';
import { argument, type CallSite, type Emitter, nodeAt, optionalPiece, piece } from './site.ts';

const texts = (site: CallSite, from: number): Sql =>
  commaList(site.values.slice(from).map((value) => toText(value, site.statement)));

const length: Emitter = (site) => {
  const { type, sql: value } = argument(site, 0);
  if (type.kind === 'array' || type.kind === 'tuple')
    return { sql: sql`jsonb_array_length(${value})::int8`, type: scalar('integer', type.nullable) };
  if (type.kind === 'map')
    return {
      sql: sql`(select count(*) from jsonb_object_keys(${value}))`,
      type: scalar('integer', type.nullable),
    };
  return {
    sql: sql`octet_length(${textArgument(site)})::int8`,
    type: scalar('integer', type.nullable),
  };
};

function textArgument(site: CallSite): Sql {
  const value = argument(site, 0);
  if (!['string', 'json', 'null', 'uuid'].includes(value.type.kind))
    throw site.statement.error(`Function '${site.name}' expects a text or an array.`, nodeAt(site, 0));
  return toText(value, site.statement);
}

const isEmpty =
  (negated: boolean): Emitter =>
  (site) => {
    const { type, sql: value } = argument(site, 0);
    const sign = negated ? sql`<>` : sql`=`;
    const empty = type.kind === 'array' ? sql`'[]'::jsonb` : type.kind === 'map' ? sql`'{}'::jsonb` : sql`''`;
    const tested = type.kind === 'array' || type.kind === 'map' ? value : textArgument(site);
    return { sql: sql`(${tested} ${sign} ${empty})`, type: scalar('boolean', type.nullable) };
  };

/** Negative places count from the end. */
const substring: Emitter = (site) => {
  const [text, from] = [piece(site, 0), piece(site, 1)];
  const count = optionalPiece(site, 2);
  const start = argument(site, 1).constant;
  const place =
    typeof start === 'bigint' && start > 0n
      ? sql`(${from})::int4`
      : sql`(case when ${from} < 0 then greatest(char_length(${text}) + ${from} + 1, 1) else ${from} end)::int4`;
  if (count === undefined) return sql`substr(${text}, ${place})`;
  return sql`substr(${text}, ${place}, greatest((${count})::int4, 0))`;
};

const trimmed =
  (name: Sql): Emitter =>
  (site) =>
    sql`${name}(${piece(site, 0)}, ${optionalPiece(site, 1) ?? sql`' '`})`;

const padded =
  (name: Sql): Emitter =>
  (site) =>
    sql`${name}(${piece(site, 0)}, (${piece(site, 1)})::int4, ${optionalPiece(site, 2) ?? sql`' '`})`;

/** Where a text is found, from one, searched from a place on. */
const positionOf = (text: Sql, wanted: Sql, from: Sql | undefined): Sql => {
  if (from === undefined) return sql`(strpos(${text}, ${wanted}))::int8`;
  const found = sql`strpos(substr(${text}, (${from})::int4), ${wanted})`;
  return sql`(case when ${found} = 0 then 0 else ${found} + ${from} - 1 end)::int8`;
};

const asRows = (site: CallSite, rows: Sql): { sql: Sql; type: ReturnType<typeof arrayOf> } => ({
  sql: sql`coalesce((select jsonb_agg(to_jsonb(part.v) order by part.at) from ${rows} with ordinality as part(v, at)${limitOf(site)}), '[]'::jsonb)`,
  type: arrayOf(scalar('string')),
});

const limitOf = (site: CallSite): Sql => {
  const most = site.values[2];
  return most?.type.kind === 'integer' ? sql` where part.at <= ${most.sql}` : sql``;
};

const split: Emitter = (site) => {
  const [by, text] = [argument(site, 0), piece(site, 1)];
  if (by.constant === '') return asRows(site, sql`regexp_split_to_table(${text}, '')`);
  return asRows(site, sql`string_to_table(${text}, ${by.sql})`);
};

const onlyText = (site: CallSite, rows: Sql): ReturnType<typeof asRows> =>
  asRows({ ...site, values: site.values.slice(0, 1) }, rows);

/** What the first group finds, or the whole where there is none. */
const found = (text: Sql, pattern: Sql): Sql => sql`coalesce(substring(${text} from ${pattern}), '')`;

const address = sql`'^[a-zA-Z][a-zA-Z0-9+.-]*://(?:[^/?#@]*@)?([^/?#:]*)'`;
const host = (url: Sql): Sql =>
  sql`coalesce(substring(${url} from ${address}), substring(${url} from '^//([^/?#:]*)'), '')`;

const urlPart =
  (make: (url: Sql) => Sql): Emitter =>
  (site) =>
    make(piece(site, 0));

/** The value of a parameter, whose name stands between `?` or `&` and `=`. */
const parameterOf: Emitter = (site) => {
  const [url, name] = [piece(site, 0), piece(site, 1)];
  const escaped = sql`regexp_replace(${name}, '([][().*+?^$|{}\\\\])', '\\\\\\1', 'g')`;
  return sql`coalesce(substring(${url} from ('[?&]' || ${escaped} || '=([^&#]*)')), '')`;
};

const literalPattern = (text: Sql): Sql =>
  sql`regexp_replace(${text}, '([][().*+?^$|{}\\\\])', '\\\\\\1', 'g')`;

/** `\0` is the whole in one dialect and `\&` in the other. */
const replacement = (text: Sql): Sql => sql`replace(${text}, '\\0', '\\&')`;
const literalReplacement = (text: Sql): Sql => sql`replace(${text}, '\\', '\\\\')`;

const replaced =
  (flags: string, isPattern: boolean): Emitter =>
  (site) => {
    const [text, from, to] = [piece(site, 0), piece(site, 1), piece(site, 2)];
    const pattern = isPattern ? from : literalPattern(from);
    const by = isPattern ? replacement(to) : literalReplacement(to);
    return flags === ''
      ? sql`regexp_replace(${text}, ${pattern}, ${by})`
      : sql`regexp_replace(${text}, ${pattern}, ${by}, ${ownText(`'${flags}'`)})`;
  };

const format: Emitter = (site) => {
  const pattern = argument(site, 0).constant;
  if (typeof pattern !== 'string')
    throw site.statement.error(`The pattern of '${site.name}' is a constant text.`, nodeAt(site, 0));
  let next = 1;
  const parts = pattern.split(/(\{\d*\})/).map((part) => {
    const place = /^\{(\d*)\}$/.exec(part)?.[1];
    if (place === undefined) return bind(part, 'text');
    const value = site.values[place === '' ? next++ : Number(place) + 1];
    if (value === undefined) throw site.statement.error(`There is no value for ${part}.`, nodeAt(site, 0));
    return toText(value, site.statement);
  });
  return sql`concat(${commaList(parts)})`;
};

const reverse: Emitter = (site) => {
  const { type, sql: value } = argument(site, 0);
  if (type.kind === 'array')
    return {
      sql: sql`(select coalesce(jsonb_agg(part.v order by part.at desc), '[]'::jsonb) from jsonb_array_elements(${value}) with ordinality as part(v, at))`,
      type,
    };
  return { sql: sql`reverse(${textArgument(site)})`, type: scalar('string', type.nullable) };
};

export const textEmitters: Readonly<Record<string, Emitter>> = {
  length,
  empty: isEmpty(false),
  notEmpty: isEmpty(true),
  reverse,
  format,
  concat: (site) => ({
    sql: site.values.length === 0 ? sql`''::text` : sql`concat(${texts(site, 0)})`,
    type: scalar('string'),
  }),
  concatWithSeparator: (site) => ({
    sql: sql`concat_ws(${piece(site, 0)}, ${texts(site, 1)})`,
    type: scalar('string'),
  }),
  substring,
  trim: trimmed(sql`btrim`),
  trimLeft: trimmed(sql`ltrim`),
  trimRight: trimmed(sql`rtrim`),
  leftPad: padded(sql`lpad`),
  rightPad: padded(sql`rpad`),
  endsWith: (site) => sql`(right(${piece(site, 0)}, char_length(${piece(site, 1)})) = ${piece(site, 1)})`,
  base64Encode: (site) => sql`replace(encode(convert_to(${piece(site, 0)}, 'UTF8'), 'base64'), chr(10), '')`,
  base64Decode: (site) => sql`convert_from(decode(${piece(site, 0)}, 'base64'), 'UTF8')`,
  md5: (site) => sql`md5(${piece(site, 0)})`,
  position: (site) => positionOf(piece(site, 0), piece(site, 1), optionalPiece(site, 2)),
  locate: (site) => positionOf(piece(site, 0), piece(site, 1), optionalPiece(site, 2)),
  positionCaseInsensitive: (site) =>
    positionOf(sql`lower(${piece(site, 0)})`, sql`lower(${piece(site, 1)})`, optionalPiece(site, 2)),
  match: (site) => sql`(${piece(site, 0)} ~ ${piece(site, 1)})`,
  multiMatchAny: (site) =>
    sql`exists (select from jsonb_array_elements_text(${piece(site, 1)}) as pattern(v) where ${piece(site, 0)} ~ pattern.v)`,
  extract: (site) => found(piece(site, 0), piece(site, 1)),
  extractAll: (site) => ({
    sql: sql`coalesce((select jsonb_agg(to_jsonb(part.v[1]) order by part.at) from regexp_matches(${piece(site, 0)}, ${piece(site, 1)}, 'g') with ordinality as part(v, at)), '[]'::jsonb)`,
    type: arrayOf(scalar('string')),
  }),
  extractGroups: (site) => ({
    sql: sql`coalesce(to_jsonb(regexp_match(${piece(site, 0)}, ${piece(site, 1)})), '[]'::jsonb)`,
    type: arrayOf(scalar('string')),
  }),
  regexpExtract: (site) =>
    sql`coalesce((regexp_match(${piece(site, 0)}, case when ${optionalPiece(site, 2) ?? sql`1`} = 0 then '(' || ${piece(site, 1)} || ')' else ${piece(site, 1)} end))[greatest((${optionalPiece(site, 2) ?? sql`1`})::int4, 1)], '')`,
  countSubstrings: (site) =>
    sql`((char_length(${piece(site, 0)}) - char_length(replace(${piece(site, 0)}, ${piece(site, 1)}, ''))) / nullif(char_length(${piece(site, 1)}), 0))::int8`,
  countMatches: (site) => sql`(regexp_count(${piece(site, 0)}, ${piece(site, 1)}))::int8`,
  hasToken: (site) =>
    sql`(${piece(site, 0)} ~ ('(^|[^[:alnum:]])' || ${literalPattern(piece(site, 1))} || '($|[^[:alnum:]])'))`,
  replaceAll: (site) => sql`replace(${piece(site, 0)}, ${piece(site, 1)}, ${piece(site, 2)})`,
  replaceOne: replaced('', false),
  replaceRegexpOne: replaced('', true),
  replaceRegexpAll: replaced('g', true),
  splitByChar: split,
  splitByString: split,
  splitByRegexp: (site) => asRows(site, sql`regexp_split_to_table(${piece(site, 1)}, ${piece(site, 0)})`),
  splitByWhitespace: (site) =>
    onlyText(site, sql`regexp_split_to_table(btrim(${piece(site, 0)}), '[[:space:]]+')`),
  alphaTokens: (site) => ({
    sql: sql`coalesce((select jsonb_agg(to_jsonb(part.v[1]) order by part.at) from regexp_matches(${piece(site, 0)}, '[a-zA-Z]+', 'g') with ordinality as part(v, at)), '[]'::jsonb)`,
    type: arrayOf(scalar('string')),
  }),
  protocol: urlPart((url) => found(url, sql`'^([a-zA-Z][a-zA-Z0-9+.-]*)://'`)),
  domain: urlPart(host),
  domainWithoutWWW: urlPart((url) => sql`regexp_replace(${host(url)}, '^www[.]', '')`),
  topLevelDomain: urlPart((url) => found(host(url), sql`'[.]([^.0-9][^.]*)$'`)),
  path: urlPart((url) => found(url, sql`'^(?:[a-zA-Z][a-zA-Z0-9+.-]*:)?//[^/?#]*(/[^?#]*)'`)),
  pathFull: urlPart((url) => found(url, sql`'^(?:[a-zA-Z][a-zA-Z0-9+.-]*:)?//[^/?#]*(/.*)$'`)),
  queryString: urlPart((url) => found(url, sql`'^[^?#]*[?]([^#]*)'`)),
  fragment: urlPart((url) => found(url, sql`'#(.*)$'`)),
  port: (site) =>
    sql`coalesce((substring(${piece(site, 0)} from '^[a-zA-Z][a-zA-Z0-9+.-]*://(?:[^/?#@]*@)?[^/?#:]*:([0-9]{1,5})'))::int8, ${optionalPiece(site, 1) ?? sql`0`})`,
  extractURLParameter: parameterOf,
  extractURLParameters: (site) => ({
    sql: sql`coalesce((select jsonb_agg(to_jsonb(part.v[1]) order by part.at) from regexp_matches(${piece(site, 0)}, '[?&]([^&#]+)', 'g') with ordinality as part(v, at)), '[]'::jsonb)`,
    type: arrayOf(scalar('string')),
  }),
  cutQueryString: urlPart((url) => sql`regexp_replace(${url}, '[?][^#]*', '')`),
  cutQueryStringAndFragment: urlPart((url) => sql`regexp_replace(${url}, '[?#].*$', '')`),
};
