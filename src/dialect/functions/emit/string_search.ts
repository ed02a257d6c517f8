import {
  argument,
  type CallSite,
  type Emitter,
  argumentNode,
  argumentSql,
} from '../../compile/functions/call_site.ts';
import { fromJson } from '../../compile/json_values.ts';
import { checkedPattern } from '../../compile/regular_expressions.ts';
import type { PatternUse } from '../../regular_expressions/translate.ts';
import { bind, joinSql, sql, type Sql } from '../../sql.ts';
import { arrayOf, scalar, type ScalarKind, type Type } from '../../types.ts';
import { itemTypeOf } from './array_items.ts';
import { clamped } from './bounds.ts';
import { computeOnce } from '../../compile/compute_once.ts';
import { patternAt, replacementAt, useOfReplacement } from './patterns.ts';

const nullable = (site: CallSite): boolean => site.values.some(({ type }) => type.nullable);
const typed = (site: CallSite, kind: ScalarKind): Type => scalar(kind, nullable(site));

/** The position of a substring, from 1; 0 if not found. */
const position =
  (text: number, wanted: number, fold: (text: Sql) => Sql): Emitter =>
  (site) => {
    const [inside, part] = [fold(argumentSql(site, text)), fold(argumentSql(site, wanted))];
    const from = site.values[2];
    if (from === undefined)
      return { sql: sql`(strpos(${inside}, ${part}))::int8`, type: typed(site, 'integer') };
    const start = clamped(from.sql, sql`1`, sql`1000000000`);
    return {
      sql: sql`(case when strpos(substr(${inside}, ${start}), ${part}) = 0 or ${start} > char_length(${inside}) + 1 then 0
        else strpos(substr(${inside}, ${start}), ${part}) + ${start} - 1 end)::int8`,
      type: typed(site, 'integer'),
    };
  };

const caseSensitive = (text: Sql): Sql => text;
const caseInsensitive = (text: Sql): Sql => sql`lower(${text})`;

const matches =
  (make: (text: Sql, pattern: Sql) => Sql, kind: ScalarKind, use: PatternUse): Emitter =>
  (site) => ({ sql: make(argumentSql(site, 0), patternAt(site, 1, use)), type: typed(site, kind) });

const found =
  (make: (found: Sql) => Sql, limit: Sql, flags: Sql): Emitter =>
  (site) => ({
    sql: sql`(select coalesce(jsonb_agg(${make(sql`one.m`)} order by one.at), '[]'::jsonb)
      from (select * from regexp_matches(${argumentSql(site, 0)}, ${patternAt(site, 1, 'groups')}, ${flags}) with ordinality as all_found(m, at) ${limit}) as one)`,
    type: arrayOf(scalar('string')),
  });

const extractGroups: Emitter = (site) => ({
  sql: sql`coalesce((select jsonb_agg(coalesce(g.v, '') order by g.at) from unnest(regexp_match(${argumentSql(site, 0)}, ${patternAt(site, 1, 'groups')})) with ordinality as g(v, at)), '[]'::jsonb)`,
  type: arrayOf(scalar('string')),
});

const regexpExtract: Emitter = (site) => {
  const group = site.values[2]?.sql ?? sql`1::int8`;
  const text = argument(site, 0);
  const [whole, pattern] = [patternAt(site, 1, 'text'), patternAt(site, 1, 'groups')];
  return {
    sql: computeOnce(
      [text],
      (
        t = sql``,
      ) => sql`(case when ${t} is not null then coalesce(case when ${group} = 0 then substring(${t} from ${whole})
        else (regexp_match(${t}, ${pattern}))[${clamped(group, sql`-1`, sql`100`)}] end, '') end)`,
    ),
    type: typed(site, 'string'),
  };
};

const multiMatchAny: Emitter = (site) => {
  const text = argument(site, 0);
  const patterns = argument(site, 1);
  const type = scalar('boolean', text.type.nullable);
  if (!['string', 'null'].includes(itemTypeOf(patterns).kind))
    throw site.statement.error(
      `Function '${site.name}' expects an array of patterns.`,
      argumentNode(site, 1),
    );
  if (patterns.items !== undefined) {
    const each = patterns.items.map((item) =>
      patternAt({ ...site, values: site.values.with(1, item) }, 1, 'match'),
    );
    if (each.length === 0) return { sql: sql`false`, type };
    return {
      sql: computeOnce(
        [text],
        (t = sql``) =>
          sql`(${joinSql(
            each.map((pattern) => sql`${t} ~ ${pattern}`),
            ' or ',
          )})`,
      ),
      type,
    };
  }
  const item = fromJson(sql`pattern.value`, sql`(pattern.value #>> '{}')`, scalar('string'));
  return {
    sql: sql`exists (select from jsonb_array_elements(${patterns.sql}) as pattern where ${text.sql} ~ ${checkedPattern(item)})`,
    type: scalar('boolean'),
  };
};

const replaceOne: Emitter = (site) => {
  const [text, part, replacement] = [argument(site, 0), argument(site, 1), argument(site, 2)];
  const isGiven = [part, replacement]
    .filter(({ type }) => type.nullable)
    .map((value) => sql`${value.sql} is not null`);
  const otherwise = isGiven.length === 0 ? sql` else` : sql` when ${joinSql(isGiven, ' and ')} then`;
  return {
    sql: computeOnce(
      [text, part],
      (t = sql``, n = sql``) =>
        sql`(case when strpos(${t}, ${n}) > 0 and ${n} <> '' then overlay(${t} placing ${replacement.sql} from strpos(${t}, ${n}) for char_length(${n}))${otherwise} ${t} end)`,
    ),
    type: typed(site, 'string'),
  };
};

/** Words consist of letters, digits and non-ASCII characters. */
const hasToken: Emitter = (site) => ({
  sql: sql`(${argumentSql(site, 1)} = any(regexp_split_to_array(${argumentSql(site, 0)}, '[\\x01-\\x2f\\x3a-\\x40\\x5b-\\x60\\x7b-\\x7f]+')) and ${argumentSql(site, 1)} <> '')`,
  type: typed(site, 'boolean'),
});

export const stringSearchEmitters = {
  position: position(0, 1, caseSensitive),
  positionCaseInsensitive: position(0, 1, caseInsensitive),
  locate: position(1, 0, caseSensitive),
  endsWith: (site) => ({
    sql: sql`(right(${argumentSql(site, 0)}, char_length(${argumentSql(site, 1)})) = ${argumentSql(site, 1)})`,
    type: typed(site, 'boolean'),
  }),
  startsWith: (site) => ({
    sql: sql`starts_with(${argumentSql(site, 0)}, ${argumentSql(site, 1)})`,
    type: typed(site, 'boolean'),
  }),
  match: matches((text, pattern) => sql`(${text} ~ ${pattern})`, 'boolean', 'match'),
  multiMatchAny,
  extract: matches(
    (text, pattern) =>
      sql`coalesce(substring(${text} from ${pattern}), case when ${text} is not null then '' end)`,
    'string',
    'groups',
  ),
  extractAll: found((m) => sql`coalesce(${m}[1], '')`, sql``, bind('g', 'text')),
  extractGroups,
  regexpExtract,
  countSubstrings: (site) => ({
    sql: sql`(coalesce((char_length(${argumentSql(site, 0)}) - char_length(replace(${argumentSql(site, 0)}, ${argumentSql(site, 1)}, ''))) / nullif(char_length(${argumentSql(site, 1)}), 0), case when ${argumentSql(site, 0)} is not null and ${argumentSql(site, 1)} is not null then 0 end))::int8`,
    type: typed(site, 'integer'),
  }),
  countMatches: matches(
    (text, pattern) =>
      sql`(select case when ${text} is not null then count(*) filter (where m.v[1] <> '') end from regexp_matches(${text}, ${pattern}, 'g') as m(v))`,
    'integer',
    'text',
  ),
  hasToken,
  replaceOne,
  replaceAll: (site) => ({
    sql: sql`replace(${argumentSql(site, 0)}, ${argumentSql(site, 1)}, ${argumentSql(site, 2)})`,
    type: typed(site, 'string'),
  }),
  replaceRegexpOne: (site) => ({
    sql: sql`regexp_replace(${argumentSql(site, 0)}, ${patternAt(site, 1, useOfReplacement(site, 2))}, ${replacementAt(site, 2)})`,
    type: typed(site, 'string'),
  }),
  replaceRegexpAll: (site) => ({
    sql: sql`regexp_replace(${argumentSql(site, 0)}, ${patternAt(site, 1, useOfReplacement(site, 2))}, ${replacementAt(site, 2)}, 'g')`,
    type: typed(site, 'string'),
  }),
} satisfies Readonly<Record<string, Emitter>>;
