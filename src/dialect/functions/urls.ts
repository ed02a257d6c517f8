import { computeOnce, computeSqlOnce } from '../compile/compiler.ts';
import { bind, sql, type Sql } from '../sql.ts';
import { arrayOf, scalarType } from '../types.ts';
import {
  decodeUtf8,
  argument,
  argumentSql,
  type Emitter,
  type FunctionDefinition,
  scalar,
} from './function_definition.ts';

/** A part of a URL matched by a pattern; '' if nothing matches, null for null. */
const part =
  (make: (url: Sql) => Sql): Emitter =>
  (site) => {
    const value = argument(site, 0);
    return {
      sql: computeOnce(
        [value],
        (url = sql``) => sql`(case when ${url} is not null then coalesce(${make(url)}, '') end)`,
      ),
      type: scalarType('string', value.type.nullable),
    };
  };

const first = (url: Sql, pattern: string): Sql => sql`substring(${url} from ${bind(pattern, 'text')})`;

/** The host, with or without a scheme: contains a dot, follows the user info and ends before a port or path. */
const host = (url: Sql): Sql =>
  sql`coalesce(${first(url, '^(?:(?:[A-Za-z][A-Za-z0-9+.-]*:)?//)?(?:[^/?#@:]*@)?([^/?#:@ <>%{}|^~;=&\\[\\]\\\\]+[.][^/?#:@ <>%{}|^~;=&\\[\\]\\\\.]+)(?=[/?#:]|$)')}, '')`;

const withoutWww = (name: Sql): Sql => sql`regexp_replace(${name}, '^www[.]', '')`;

/** The last label of a host name. */
const topLevel = (name: Sql): Sql =>
  sql`(case when ${name} ~ '^[0-9.]+$' then '' else substring(${name} from '[.]([^.]+)$') end)`;

/** Second-level domains such as co.uk, under which names are registered. */
const secondLevels = 'com|org|net|gov|edu|co|ac|mil';

const registered = (name: Sql): Sql => first(name, `([^.]+[.](?:(?:${secondLevels})[.][a-z]{2,3}|[^.]+))$`);

const port: Emitter = (site) => {
  const other = site.values[1]?.sql ?? sql`0::int8`;
  const digits = sql`substring(${argumentSql(site, 0)} from '^(?:(?:[A-Za-z][A-Za-z0-9+.-]*:)?//)?[^/?#:@]*[.][^/?#:@]*:([0-9]{1,5})(?:[/?#]|$)')`;
  return {
    sql: computeSqlOnce(
      [digits],
      (d = sql``) => sql`(case when (${d})::int8 between 1 and 65535 then (${d})::int8 else ${other} end)`,
    ),
    type: scalarType('integer', argument(site, 0).type.nullable),
  };
};

/** The URL without its scheme; its path starts at the first slash. */
const withoutScheme = (url: Sql): Sql => sql`regexp_replace(${url}, '^([A-Za-z][A-Za-z0-9+.-]*:)?//', '')`;

/** Escapes a string for use in a pattern. */
const escapePattern = (text: Sql): Sql => sql`regexp_replace(${text}, '([^A-Za-z0-9_])', '\\\\\\1', 'g')`;

const parameter: Emitter = (site) => {
  const [url, name] = [argument(site, 0), argument(site, 1)];
  return {
    sql: sql`(case when ${url.sql} is not null and ${name.sql} is not null then
      coalesce(substring(${url.sql} from '[?&#]' || ${escapePattern(name.sql)} || '=([^&#]*)'), '') end)`,
    type: scalarType('string', url.type.nullable || name.type.nullable),
  };
};

const strings = arrayOf(scalarType('string'));

/** What stands between & and # after the first ? or #. As in ClickHouse, the last must have a =, so that a fragment is none. */
const parameters =
  (select: Sql): Emitter =>
  (site) => ({
    sql: computeSqlOnce(
      [sql`regexp_split_to_array(substring(${argumentSql(site, 0)} from '[?#](.*)$'), '[&#]')`],
      (
        texts = sql``,
      ) => sql`(select coalesce(jsonb_agg(${select} order by given.at), '[]'::jsonb) from (select * from
        unnest(${texts}) with ordinality as part(text, at) where strpos(part.text, '=') > 0 or part.at < cardinality(${texts})) as given)`,
    ),
    type: strings,
  });

/** The scheme and the host of a URL, with user and port. */
const origin = '^(?:[A-Za-z][A-Za-z0-9+.-]*:)//[^/?#]*';

/** The URL, or its path, up to each /, ? or #, and as a whole. A URL without a scheme has no parts. */
const hierarchy =
  (of: 'url' | 'path'): Emitter =>
  (site) => {
    const url = argumentSql(site, 0);
    const start = first(url, `(${origin}[/?#]?)`);
    const shown = of === 'url' ? sql`run.v <> ''` : sql`run.at > 0`;
    const head = of === 'url' ? sql`coalesce(${start}, ${url})` : sql`right(${start}, 1)`;
    return {
      sql: sql`(select coalesce(jsonb_agg(run.v order by run.at) filter (where ${shown}), '[]'::jsonb) from (select string_agg(piece.v, '') over (order by piece.at) as v, piece.at
        from (select ${head} as v, 0 as at union all select found.m[1], found.at
          from regexp_matches(substring(${url} from ${bind(`${origin}[/?#](.*)$`, 'text')}), '([/?#]*[^/?#]+[/?#]?|[/?#]+$)', 'g') with ordinality as found(m, at)) as piece) as run)`,
      type: strings,
    };
  };

const cutParameter: Emitter = (site) => {
  const [url, name] = [argument(site, 0), argument(site, 1)];
  const pattern = escapePattern(name.sql);
  return {
    sql: sql`regexp_replace(regexp_replace(${url.sql}, '([?#])' || ${pattern} || '=[^&#]*&?', '\\1'), '&' || ${pattern} || '=[^&#]*', '')`,
    type: scalarType('string', url.type.nullable || name.type.nullable),
  };
};

/** Decodes %XX; a % without two digits stays. Invalid UTF-8 leaves the string unchanged. */
const decode: Emitter = (site) => {
  const value = argument(site, 0);
  return {
    sql: computeOnce(
      [value],
      (
        text = sql``,
      ) => sql`(case when strpos(${text}, '%') = 0 then ${text} else coalesce((select ${decodeUtf8(sql`string_agg(case
        when part.m[1] is not null then decode(part.m[1], 'hex') else convert_to(part.m[2], 'UTF8') end, ''::bytea order by part.at)`)}
        from regexp_matches(${text}, '%([0-9A-Fa-f]{2})|([^%]+|%)', 'g') with ordinality as part(m, at)), ${text}) end)`,
    ),
    type: scalarType('string', value.type.nullable),
  };
};

const encode: Emitter = (site) => {
  const value = argument(site, 0);
  return {
    sql: computeOnce(
      [value],
      (
        text = sql``,
      ) => sql`(case when ${text} is not null then coalesce((select string_agg(case when one.c ~ '^[A-Za-z0-9_.~-]$' then one.c
        else regexp_replace(upper(encode(convert_to(one.c, 'UTF8'), 'hex')), '(..)', '%\\1', 'g') end, '' order by one.at)
        from unnest(string_to_array(${text}, null)) with ordinality as one(c, at)), '') end)`,
    ),
    type: scalarType('string', value.type.nullable),
  };
};

/** Functions of URLs. */
export const urlFunctions: readonly FunctionDefinition[] = [
  scalar(
    'protocol(string): string',
    'The scheme of a URL.',
    part((url) => first(url, '^([A-Za-z][A-Za-z0-9+.-]*)://')),
  ),
  scalar('domain(string): string', 'The host of a URL.', part(host)),
  scalar(
    'domainWithoutWWW(string): string',
    'The host without www.',
    part((url) => withoutWww(host(url))),
  ),
  scalar(
    'topLevelDomain(string): string',
    'The last part of the host.',
    part((url) => computeSqlOnce([host(url)], (name = sql``) => topLevel(name))),
  ),
  scalar(
    'cutToFirstSignificantSubdomain(string): string',
    'The host from the registered name on.',
    part((url) =>
      computeSqlOnce([withoutWww(host(url))], (name = sql``) => sql`coalesce(${registered(name)}, ${name})`),
    ),
  ),
  scalar(
    'firstSignificantSubdomain(string): string',
    'The first part of the registered name.',
    part((url) =>
      computeSqlOnce([withoutWww(host(url))], (name = sql``) => sql`split_part(${registered(name)}, '.', 1)`),
    ),
  ),
  scalar(
    'netloc(string): string',
    'The host with user and port.',
    part((url) => sql`substring(${withoutScheme(url)} from '^[^/?#]*')`),
  ),
  scalar('port(string, integer?): integer', 'The port of a URL, or 0.', port),
  scalar(
    'path(string): string',
    'The path of a URL.',
    part((url) => sql`substring(${withoutScheme(url)} from '(/[^?#]*)')`),
  ),
  scalar(
    'pathFull(string): string',
    'The path with query and fragment.',
    part((url) => sql`substring(${withoutScheme(url)} from '(/.*)$')`),
  ),
  scalar(
    'queryString(string): string',
    'The query of a URL.',
    part((url) => first(url, '[?]([^#]*)')),
  ),
  scalar(
    'queryStringAndFragment(string): string',
    'The query and the fragment of a URL.',
    part((url) => sql`coalesce(${first(url, '^[^?#]*[?](.*)$')}, ${first(url, '^[^?#]*(#.*)$')})`),
  ),
  scalar(
    'fragment(string): string',
    'The fragment of a URL.',
    part((url) => first(url, '#(.*)$')),
  ),
  scalar('extractURLParameter(string, string): string', 'A query parameter of a URL.', parameter),
  scalar(
    'extractURLParameters(string): array(string)',
    'All query parameters of a URL.',
    parameters(sql`given.text`),
  ),
  scalar(
    'extractURLParameterNames(string): array(string)',
    'The names of all query parameters of a URL.',
    parameters(sql`split_part(given.text, '=', 1)`),
  ),
  scalar('URLHierarchy(string): array(string)', 'The URL up to each of its parts.', hierarchy('url')),
  scalar('URLPathHierarchy(string): array(string)', 'The path up to each of its parts.', hierarchy('path')),
  scalar(
    'cutQueryString(string): string',
    'The URL without its query.',
    part((url) => sql`regexp_replace(${url}, '^([^?#]*)[?][^#]*', '\\1')`),
  ),
  scalar(
    'cutQueryStringAndFragment(string): string',
    'The URL without query and fragment.',
    part((url) => sql`regexp_replace(${url}, '[?#].*$', '')`),
  ),
  scalar(
    'cutFragment(string): string',
    'The URL without its fragment.',
    part((url) => sql`regexp_replace(${url}, '#.*$', '')`),
  ),
  scalar(
    'cutWWW(string): string',
    'The URL without www. at the start of its host.',
    part((url) => sql`regexp_replace(${url}, '^((?:[A-Za-z][A-Za-z0-9+.-]*:)?//)www[.]', '\\1')`),
  ),
  scalar('cutURLParameter(string, string): string', 'The URL without a query parameter.', cutParameter),
  scalar('decodeURLComponent(string): string', 'A string with %XX decoded.', decode),
  scalar('encodeURLComponent(string): string', 'A string with %XX encoding.', encode),
];
