import { computeOnce, computeSqlOnce } from '../compile/compiler.ts';
import { fromJson, itemTypeOf, unnestWithIndex } from '../compile/expressions/coerce.ts';
import { checkedPattern, type PatternUse, toPostgresPattern } from '../regular_expressions/translate.ts';
import type { Value } from '../resolve/value.ts';
import { bind, joinSql, sql, type Sql } from '../sql.ts';
import { arrayOf, type ScalarKind, scalarType, type Type } from '../types.ts';
import {
  clamped,
  argument,
  argumentError,
  argumentNode,
  argumentSql,
  type CallSite,
  type Emitter,
  type FunctionDefinition,
  isNullable,
  scalar,
  standardScalar,
} from './function_definition.ts';

/** The regular expression argument at an index. @throws DialectError if PostgreSQL cannot read it */
const patternAt = (site: CallSite, index: number, use: PatternUse): Sql =>
  toPostgresPattern(argument(site, index), argumentNode(site, index), site.statement, use);

/** A replacement argument; `\0` is the whole match. */
const replacementAt = (site: CallSite, index: number): Sql =>
  sql`replace(${argument(site, index).sql}, '\\0', '\\&')`;

/** What a replacement argument reads of the match. */
function useOfReplacement(site: CallSite, index: number): PatternUse {
  const { constant } = argument(site, index);
  return typeof constant === 'string' && !/\\[1-9]/.test(constant) ? 'text' : 'groups';
}

const texts = arrayOf(scalarType('string'));

const typed = (site: CallSite, kind: ScalarKind): Type => scalarType(kind, isNullable(site));

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

/** Empty matches do not count. */
const countOfMatches = (text: Sql, pattern: Sql, flags: Sql): Sql =>
  sql`(select case when ${text} is not null then count(*) filter (where m.v[1] <> '') end from regexp_matches(${text}, ${pattern}, ${flags}) as m(v))`;

const foundMatches =
  (make: (found: Sql) => Sql, limit: Sql, flags: Sql): Emitter =>
  (site) => ({
    sql: sql`(select coalesce(jsonb_agg(${make(sql`one.m`)} order by one.at), '[]'::jsonb)
      from (select * from regexp_matches(${argumentSql(site, 0)}, ${patternAt(site, 1, 'groups')}, ${flags}) with ordinality as all_found(m, at) ${limit}) as one)`,
    type: arrayOf(scalarType('string')),
  });

const extractGroups: Emitter = (site) => ({
  sql: sql`coalesce((select jsonb_agg(coalesce(g.v, '') order by g.at) from unnest(regexp_match(${argumentSql(site, 0)}, ${patternAt(site, 1, 'groups')})) with ordinality as g(v, at)), '[]'::jsonb)`,
  type: arrayOf(scalarType('string')),
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
  const type = scalarType('boolean', text.type.nullable);
  if (!['string', 'null'].includes(itemTypeOf(patterns).kind))
    throw argumentError(site, 1, `Function '${site.name}' expects an array of patterns.`);
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
  const item = fromJson(sql`pattern.value`, sql`(pattern.value #>> '{}')`, scalarType('string'));
  return {
    sql: sql`exists (select from jsonb_array_elements(${patterns.sql}) as pattern where ${text.sql} ~ ${checkedPattern(item)})`,
    type: scalarType('boolean'),
  };
};

const countSubstrings =
  (fold: (text: Sql) => Sql): Emitter =>
  (site) => {
    const [text, part] = [fold(argumentSql(site, 0)), fold(argumentSql(site, 1))];
    return {
      sql: sql`(coalesce((char_length(${text}) - char_length(replace(${text}, ${part}, ''))) / nullif(char_length(${part}), 0), case when ${text} is not null and ${part} is not null then 0 end))::int8`,
      type: typed(site, 'integer'),
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

/** What separates words, which consist of letters, digits and non-ASCII characters. */
const wordSeparators = sql`'[\\x01-\\x2f\\x3a-\\x40\\x5b-\\x60\\x7b-\\x7f]+'`;
const wordsOf = (text: Sql): Sql => sql`regexp_split_to_array(${text}, ${wordSeparators})`;

const hasToken =
  (fold: (text: Sql) => Sql): Emitter =>
  (site) => ({
    sql: sql`(${fold(argumentSql(site, 1))} = any(${wordsOf(fold(argumentSql(site, 0)))}) and ${argumentSql(site, 1)} <> '')`,
    type: typed(site, 'boolean'),
  });

/** Whether a string contains any or all words of an array, or of another string. */
const hasTokens =
  (quantity: 'any' | 'all'): Emitter =>
  (site) => {
    const [text, wanted] = [argument(site, 0), argument(site, 1)];
    const list =
      wanted.type.kind === 'string'
        ? sql`array_remove(${wordsOf(wanted.sql)}, '')`
        : sql`array(select jsonb_array_elements_text(${neededTexts(site, 1).sql}))`;
    const operator = quantity === 'any' ? sql`&&` : sql`@>`;
    return {
      sql: computeSqlOnce(
        [list],
        (words = sql``) => sql`(${wordsOf(text.sql)} ${operator} ${words} and cardinality(${words}) > 0)`,
      ),
      type: scalarType('boolean', text.type.nullable || wanted.type.nullable),
    };
  };

/** An argument that must be an array of strings. */
function neededTexts(site: CallSite, index: number): Value {
  const value = argument(site, index);
  const isList = value.type.kind === 'array' && ['string', 'null'].includes(value.type.item.kind);
  if (!isList) throw argumentError(site, index, `Function '${site.name}' expects an array of strings.`);
  return value;
}

/** Searches for each string of an array: `each.at` is its index and `found.position` where it starts, 0 if nowhere. */
const multiSearch =
  (select: Sql, type: Type, fold: (text: Sql) => Sql): Emitter =>
  (site) => {
    const [text, wanted] = [argument(site, 0), neededTexts(site, 1)];
    const position = sql`strpos(${fold(sql`given.text`)}, ${fold(sql`(each.v #>> '{}')`)})`;
    return {
      sql: sql`(select ${select} from (select ${text.sql} as text) as given, ${unnestWithIndex(wanted.sql)}, lateral (select (${position})::int8 as position) as found)`,
      type,
    };
  };

const searchedInteger = scalarType('integer');
const multiSearchResults = [
  [
    'Any',
    'boolean',
    'Whether a string contains any of several strings.',
    sql`coalesce(bool_or(found.position > 0), false)`,
    scalarType('boolean'),
  ],
  [
    'FirstIndex',
    'integer',
    'The index of the first of several strings that a string contains, from 1; 0 if none.',
    sql`coalesce(min(each.at) filter (where found.position > 0), 0)`,
    searchedInteger,
  ],
  [
    'FirstPosition',
    'integer',
    'The position of the leftmost of several strings, from 1; 0 if none.',
    sql`coalesce(min(found.position) filter (where found.position > 0), 0)`,
    searchedInteger,
  ],
  [
    'AllPositions',
    'array(integer)',
    'The position of each of several strings, from 1; 0 where not found.',
    sql`coalesce(jsonb_agg(found.position order by each.at), '[]'::jsonb)`,
    arrayOf(searchedInteger),
  ],
] as const;

/** `multiSearchAny`, `multiSearchAnyCaseInsensitive` and so on. */
const multiSearchFunctions = multiSearchResults.flatMap(([name, returns, description, select, type]) => [
  scalar(
    `multiSearch${name}(string, array(string)): ${returns}`,
    description,
    multiSearch(select, type, caseSensitive),
  ),
  scalar(
    `multiSearch${name}CaseInsensitive(string, array(string)): ${returns}`,
    'The same, case-insensitive.',
    multiSearch(select, type, caseInsensitive),
  ),
]);

/** The groups of all matches, an array for each match. */
const groupsByMatch: Emitter = (site) => ({
  sql: sql`(select coalesce(jsonb_agg((select jsonb_agg(coalesce(part.v, '') order by part.at) from unnest(one.m) with ordinality as part(v, at)) order by one.at), '[]'::jsonb)
    from ${allMatches(site)})`,
  type: arrayOf(texts),
});

/** The groups of all matches, an array for each group, empty if nothing matches. */
const groupsByNumber: Emitter = (site) => ({
  sql: sql`(select jsonb_agg((select coalesce(jsonb_agg(coalesce(one.m[numbered.n], '') order by one.at), '[]'::jsonb) from ${allMatches(site)}) order by numbered.n)
    from generate_series(1, cardinality(regexp_match('', ${patternAt(site, 1, 'groups')} || '|'))) as numbered(n))`,
  type: arrayOf(texts),
});

const allMatches = (site: CallSite): Sql =>
  sql`regexp_matches(${argumentSql(site, 0)}, ${patternAt(site, 1, 'groups')}, 'g') with ordinality as one(m, at)`;

/** Search and replacement, also by regular expressions. */
export const searchFunctions: readonly FunctionDefinition[] = [
  scalar('startsWith(string, string): boolean', 'Whether a string starts with another.', (site) => ({
    sql: sql`starts_with(${argumentSql(site, 0)}, ${argumentSql(site, 1)})`,
    type: typed(site, 'boolean'),
  })),
  scalar('endsWith(string, string): boolean', 'Whether a string ends with another.', (site) => ({
    sql: sql`(right(${argumentSql(site, 0)}, char_length(${argumentSql(site, 1)})) = ${argumentSql(site, 1)})`,
    type: typed(site, 'boolean'),
  })),
  scalar(
    'position(string, string, integer?): integer',
    'The position of a substring, from 1; 0 if not found.',
    position(0, 1, caseSensitive),
    { ranges: [{ index: 2, min: 0 }] },
  ),
  scalar(
    'positionCaseInsensitive(string, string, integer?): integer',
    'The same, case-insensitive.',
    position(0, 1, caseInsensitive),
    { ranges: [{ index: 2, min: 0 }] },
  ),
  scalar(
    'locate(string, string, integer?): integer',
    'The position of the first string in the second.',
    position(1, 0, caseSensitive),
    { ranges: [{ index: 2, min: 0 }] },
  ),
  scalar(
    'match(string, string): boolean',
    'Whether a string matches a regular expression.',
    matches((text, pattern) => sql`(${text} ~ ${pattern})`, 'boolean', 'match'),
  ),
  scalar(
    'multiMatchAny(string, array(string)): boolean',
    'Whether a string matches any of several regular expressions.',
    multiMatchAny,
  ),
  scalar(
    'extract(string, string): string',
    'The first match of a regular expression.',
    matches(
      (text, pattern) =>
        sql`coalesce(substring(${text} from ${pattern}), case when ${text} is not null then '' end)`,
      'string',
      'groups',
    ),
  ),
  scalar(
    'extractAll(string, string): array(string)',
    'All matches of a regular expression.',
    foundMatches((m) => sql`coalesce(${m}[1], '')`, sql``, bind('g', 'text')),
  ),
  scalar('extractGroups(string, string): array(string)', 'The groups of the first match.', extractGroups),
  scalar('regexpExtract(string, string, integer?): string', 'A group of the first match.', regexpExtract, {
    ranges: [{ index: 2, min: 0 }],
  }),
  scalar(
    'countSubstrings(string, string): integer',
    'Number of occurrences of a substring.',
    countSubstrings(caseSensitive),
  ),
  scalar(
    'countSubstringsCaseInsensitive(string, string): integer',
    'Number of occurrences of a substring, case-insensitive.',
    countSubstrings(caseInsensitive),
  ),
  scalar(
    'countMatches(string, string): integer',
    'Number of matches of a regular expression.',
    matches((text, pattern) => countOfMatches(text, pattern, sql`'g'`), 'integer', 'text'),
  ),
  scalar(
    'countMatchesCaseInsensitive(string, string): integer',
    'Number of matches of a regular expression, case-insensitive.',
    matches((text, pattern) => countOfMatches(text, pattern, sql`'gi'`), 'integer', 'text'),
  ),
  ...multiSearchFunctions,
  scalar(
    'extractAllGroupsVertical(string, string): array(any)',
    'The groups of all matches, an array for each match.',
    groupsByMatch,
  ),
  scalar(
    'extractAllGroupsHorizontal(string, string): array(any)',
    'The groups of all matches, an array for each group.',
    groupsByNumber,
  ),
  scalar('hasToken(string, string): boolean', 'Whether a string contains a word.', hasToken(caseSensitive)),
  scalar(
    'hasTokenCaseInsensitive(string, string): boolean',
    'Whether a string contains a word, case-insensitive.',
    hasToken(caseInsensitive),
  ),
  scalar(
    'hasAnyTokens(string, any): boolean',
    'Whether a string contains any word of an array or of another string.',
    hasTokens('any'),
  ),
  scalar(
    'hasAllTokens(string, any): boolean',
    'Whether a string contains all words of an array or of another string.',
    hasTokens('all'),
  ),
  scalar(
    'replaceOne(string, string, string): string',
    'The first occurrence of a substring replaced.',
    replaceOne,
  ),
  scalar(
    'replaceAll(string, string, string): string',
    'All occurrences of a substring replaced.',
    (site) => ({
      sql: sql`replace(${argumentSql(site, 0)}, ${argumentSql(site, 1)}, ${argumentSql(site, 2)})`,
      type: typed(site, 'string'),
    }),
  ),
  standardScalar(
    'replace(string, string, string): string',
    'All occurrences of a substring replaced.',
    'replace($1, $2, $3)',
  ),
  scalar(
    'replaceRegexpOne(string, string, string): string',
    'The first match of a regular expression replaced.',
    (site) => ({
      sql: sql`regexp_replace(${argumentSql(site, 0)}, ${patternAt(site, 1, useOfReplacement(site, 2))}, ${replacementAt(site, 2)})`,
      type: typed(site, 'string'),
    }),
  ),
  scalar(
    'replaceRegexpAll(string, string, string): string',
    'All matches of a regular expression replaced.',
    (site) => ({
      sql: sql`regexp_replace(${argumentSql(site, 0)}, ${patternAt(site, 1, useOfReplacement(site, 2))}, ${replacementAt(site, 2)}, 'g')`,
      type: typed(site, 'string'),
    }),
  ),
  scalar(
    'translate(string, string, string): string',
    'Characters replaced by others.',
    'translate($1, $2, $3)',
  ),
];

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
    throw argumentError(
      site,
      0,
      `The separator of '${site.name}' must be a single ASCII character.`,
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

const foundWords =
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

/** Functions that split a string. */
export const stringPartFunctions: readonly FunctionDefinition[] = [
  scalar(
    'splitByChar(string, string, integer?): array(string)',
    'The parts between occurrences of a character.',
    byCharacter,
  ),
  scalar(
    'splitByString(string, string, integer?): array(string)',
    'The parts between occurrences of a separator.',
    byString,
  ),
  scalar(
    'splitByRegexp(string, string, integer?): array(string)',
    'The parts between matches of a regular expression.',
    byPattern,
  ),
  scalar(
    'splitByWhitespace(string, integer?): array(string)',
    'The parts between whitespace.',
    foundWords(sql`'([^ \\t\\n\\r\\f\\v]+)'`),
  ),
  scalar(
    'alphaTokens(string, integer?): array(string)',
    'The words that consist of letters.',
    foundWords(sql`'([A-Za-z]+)'`),
  ),
  scalar(
    'splitByNonAlpha(string, integer?): array(string)',
    'The parts between whitespace and punctuation.',
    foundWords(sql`'([^\\x01-\\x2f\\x3a-\\x40\\x5b-\\x60\\x7b-\\x7f]+)'`),
  ),
  scalar('ngrams(string, integer): array(string)', 'All substrings of a length.', ngrams, {
    ranges: [{ index: 1, min: 1 }],
  }),
];
