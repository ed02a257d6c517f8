import {
  argument,
  type CallSite,
  type Emitter,
  argumentNode,
  argumentSql,
} from '../../compile/functions/call_site.ts';
import { sql, type Sql } from '../../sql.ts';
import { arrayOf, scalar } from '../../types.ts';
import { patternAt } from './patterns.ts';

const texts = arrayOf(scalar('string'));

/** A PostgreSQL array as a dialect array, limited by an optional argument. */
function partsOf(site: CallSite, parts: Sql, limit: number): ReturnType<Emitter> {
  const max = site.values[limit]?.sql;
  const kept = max === undefined ? sql`` : sql` where ${max} <= 0 or part.at <= ${max}`;
  return {
    sql: sql`(select coalesce(jsonb_agg(part.v order by part.at), '[]'::jsonb) from unnest(${parts}) with ordinality as part(v, at)${kept})`,
    type: texts,
  };
}

/** Splits at a separator; an empty one splits into characters. */
const byString: Emitter = (site) => {
  const [separator, text] = [argumentSql(site, 0), argumentSql(site, 1)];
  return partsOf(
    site,
    sql`(case when ${text} = '' then case when ${separator} = '' then '{}'::text[] else '{""}'::text[] end else string_to_array(${text}, nullif(${separator}, '')) end)`,
    2,
  );
};

const byCharacter: Emitter = (site) => {
  const { constant } = argument(site, 0);
  if (typeof constant === 'string' && Buffer.byteLength(constant) !== 1)
    throw site.statement.error(
      `The separator of '${site.name}' must be a single ASCII character.`,
      argumentNode(site, 0),
      'Use splitByString(…).',
    );
  return byString(site);
};

const byPattern: Emitter = (site) => {
  const text = argumentSql(site, 1);
  const { constant } = argument(site, 0);
  if (constant === '')
    return partsOf(
      site,
      sql`(case when ${text} = '' then '{}'::text[] else string_to_array(${text}, null) end)`,
      2,
    );
  return partsOf(site, sql`regexp_split_to_array(${text}, ${patternAt(site, 0, 'text')})`, 2);
};

const found =
  (pattern: Sql): Emitter =>
  (site) =>
    partsOf(
      site,
      sql`array(select word.m[1] from regexp_matches(${argumentSql(site, 0)}, ${pattern}, 'g') with ordinality as word(m, at) order by word.at)`,
      1,
    );

const ngrams: Emitter = (site) => {
  const [text, length] = [argumentSql(site, 0), argumentSql(site, 1)];
  return {
    sql: sql`(select coalesce(jsonb_agg(substr(${text}, offsets.n::int4, least(greatest(${length}, 0), 1000)::int4) order by offsets.n), '[]'::jsonb)
      from generate_series(1, case when ${length} between 1 and 1000 then char_length(${text}) - ${length} + 1 else 0 end) as offsets(n))`,
    type: texts,
  };
};

export const stringSplittingEmitters = {
  splitByChar: byCharacter,
  splitByString: byString,
  splitByRegexp: byPattern,
  splitByWhitespace: found(sql`'([^ \\t\\n\\r\\f\\v]+)'`),
  alphaTokens: found(sql`'([A-Za-z]+)'`),
  ngrams,
} satisfies Readonly<Record<string, Emitter>>;
