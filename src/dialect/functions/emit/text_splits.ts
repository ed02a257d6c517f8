import { argument, type CallSite, type Emitter, nodeAt, piece } from '../../compile/functions/site.ts';
import { sql, type Sql } from '../../sql.ts';
import { arrayOf, scalar } from '../../types.ts';
import { patternAt } from './patterns.ts';

const texts = arrayOf(scalar('string'));

/** Texts of an array of PostgreSQL; a number says how many at most. */
function partsOf(site: CallSite, parts: Sql, limit: number): ReturnType<Emitter> {
  const most = site.values[limit]?.sql;
  const kept = most === undefined ? sql`` : sql` where ${most} <= 0 or part.at <= ${most}`;
  return {
    sql: sql`(select coalesce(jsonb_agg(part.v order by part.at), '[]'::jsonb) from unnest(${parts}) with ordinality as part(v, at)${kept})`,
    type: texts,
  };
}

/** The parts between a text; of none, its characters. */
const byText: Emitter = (site) => {
  const [separator, text] = [piece(site, 0), piece(site, 1)];
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
      `The separator of '${site.name}' is one character of ASCII.`,
      nodeAt(site, 0),
      'Write splitByString(…).',
    );
  return byText(site);
};

const byPattern: Emitter = (site) => {
  const text = piece(site, 1);
  const { constant } = argument(site, 0);
  if (constant === '')
    return partsOf(
      site,
      sql`(case when ${text} = '' then '{}'::text[] else string_to_array(${text}, null) end)`,
      2,
    );
  return partsOf(site, sql`regexp_split_to_array(${text}, ${patternAt(site, 0)})`, 2);
};

const found =
  (pattern: Sql): Emitter =>
  (site) =>
    partsOf(
      site,
      sql`array(select word.m[1] from regexp_matches(${piece(site, 0)}, ${pattern}, 'g') with ordinality as word(m, at) order by word.at)`,
      1,
    );

const ngrams: Emitter = (site) => {
  const [text, length] = [piece(site, 0), piece(site, 1)];
  return {
    sql: sql`(select coalesce(jsonb_agg(substr(${text}, place.n::int4, least(greatest(${length}, 0), 1000)::int4) order by place.n), '[]'::jsonb)
      from generate_series(1, case when ${length} between 1 and 1000 then char_length(${text}) - ${length} + 1 else 0 end) as place(n))`,
    type: texts,
  };
};

export const textSplitEmitters: Readonly<Record<string, Emitter>> = {
  splitByChar: byCharacter,
  splitByString: byText,
  splitByRegexp: byPattern,
  splitByWhitespace: found(sql`'([^ \\t\\n\\r\\f\\v]+)'`),
  alphaTokens: found(sql`'([A-Za-z]+)'`),
  ngrams,
};
