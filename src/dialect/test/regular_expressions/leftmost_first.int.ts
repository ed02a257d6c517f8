import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { PatternError } from '../../regular_expressions/parse.ts';
import { translatePattern } from '../../regular_expressions/translate.ts';
import { createTestDatabase, type TestDatabase } from '../../../../test/setup/database.ts';
import { randomCases } from '../../../../test/setup/effort.ts';
import { project } from '../project.ts';
import { rowsOf } from '../rows_of.ts';
import { RandomPatterns } from './random_patterns.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

/** The result of an expression without rows. */
const resultOf = async (expression: string): Promise<unknown> =>
  (await rowsOf(database.pool, `SELECT ${expression}`, project))[0]?.[0];

describe('matches are those of RE2, which prefers the first branch and heeds each greediness', () => {
  it.each([
    ["extract('abab', 'a|ab')", 'a'],
    ["extract('abab', 'ab|a')", 'ab'],
    ["extract('a-b-c', '(.*?)-(.*)')", 'a'],
    ["extract('a-b-c', '(.*)-(.*)')", 'a-b'],
    ["extract('aaa', 'a+?')", 'a'],
    ["extract('aaab', 'a*?(a*)b')", 'aaa'],
    ["extract('foobar', '(foo|foobar)')", 'foo'],
    ["extract('aab', '(?U)a+')", 'a'],
    ["extractAll('<a><bc>', '<(.*?)>')", ['a', 'bc']],
    ["extractGroups('key = some value', '(\\\\w+?)\\\\s*=\\\\s*(.*?)\\\\s(.*)')", ['key', 'some', 'value']],
    ["regexpExtract('2026-11-23', '(.+?)-(.+)', 2)", '11-23'],
    ["replaceRegexpOne('aXbXc', '(.*?)X(.*)', '\\\\2|\\\\1')", 'bXc|a'],
    ["replaceRegexpAll('ababab', 'a|ab', '-')", '-b-b-b'],
    ["splitByRegexp('a|aa', 'xaayaz')", ['x', '', 'y', 'z']],
    ["countMatches('aaaa', 'a|aa')", 4],
  ])('%s', async (expression, expected) => {
    expect(await resultOf(expression)).toEqual(expected);
  });

  it('as in JavaScript, for random patterns and texts', async () => {
    const counts = { compared: 0, rejected: 0 };
    await fc.assert(
      fc.asyncProperty(fc.gen(), async (draw) => {
        const random = new RandomPatterns((bound) => draw(fc.nat, { max: bound - 1 }));
        const pattern = random.pattern();
        const translated = translatedOrNull(pattern);
        counts[translated === null ? 'rejected' : 'compared'] += 1;
        if (translated === null) return;
        const texts = Array.from({ length: 12 }, () => random.text());
        const { rows } = await database.pool.query<{ readonly found: unknown }>(
          `select jsonb_build_array(substring(given from $2), regexp_match(given, '(' || $3 || ')')) as found
            from unnest($1::text[]) with ordinality as one(given, number) order by number`,
          [texts, ...translated],
        );
        const expected = texts.map((text) => {
          const match = new RegExp(pattern, 'su').exec(text);
          return match === null
            ? [null, null]
            : [match[0], Array.from(match, (group: string | undefined) => group ?? null)];
        });
        expect(rows.map(({ found }) => found)).toEqual(expected);
      }),
      { numRuns: randomCases(150) },
    );
    expect(counts.compared).toBeGreaterThanOrEqual(counts.rejected);
  });
});

describe('a pattern whose preferences PostgreSQL cannot follow', () => {
  it.each([
    "extract('xabcabc', 'a.*?b.*c')",
    "extract('xxy', 'x*(?:xy)?')",
    "extract('ab', 'a?(?:ab)?')",
    "extract('abcd', '(?:a|ab)(c|bcd)')",
    "extract('<a><b>', '<.+?>|<.+>')",
    "extract('aabb', '(a+?)(b*)')",
    "extractAll('ab abb', 'ab??b|ab')",
    "regexpExtract('2026-11-23', '(.+?)-|x', 0)",
  ])('is rejected: %s', async (expression) => {
    await expect(resultOf(expression)).rejects.toThrow(
      'PostgreSQL cannot follow the order in which this regular expression prefers its matches. Use [^/]* instead of .*?, write longer alternatives first, or end it with $. (line 1, column ',
    );
  });
});

describe('preferences that the next character or the end of the text decides', () => {
  it.each([
    ["extract('Chrome/120.0.1', 'Chrome/(\\\\d+(?:\\\\.\\\\d+)?)')", '120.0'],
    ["extract('Chromium', 'Chrome|Chromium')", 'Chromium'],
    ["extractGroups('aaabc', '(a){2,3}?(b|bc)')", ['a', 'b']],
    ["extract('/a/b/c', '^(.*)/b')", '/a'],
    ["extract('https://ex.com/a?b', '^(?:https?://)?([^/?]+)')", 'ex.com'],
    ["extract('ex.com/a', '^(?:https?://)?([^/?]+)')", 'ex.com'],
    ["extract('http:///a', '^(?:https?://)?([^/?]+)')", 'http:'],
    ["extract('https://www.ex.com:80/a', '^(?:https?://)?(?:www\\.)?([^/:?#]+)')", 'ex.com'],
    ["extract('www.ex.com', '^(?:https?://)?(?:www\\.)?([^/:?#]+)')", 'ex.com'],
    ["extract('a?utm=x&y', '.*?utm=(.*)')", 'x&y'],
    ["extractGroups('https://ex.com/p?x=1', '^(https?)://([^/]+)(/[^?]*)?')", ['https', 'ex.com', '/p']],
  ])('%s', async (expression, expected) => {
    expect(await resultOf(expression)).toEqual(expected);
  });
});

/** The pattern for the text of the match and for its groups; null if it is not supported. */
function translatedOrNull(pattern: string): readonly [string, string] | null {
  try {
    return [translatePattern(pattern, 'text'), translatePattern(pattern, 'groups')];
  } catch (error) {
    if (error instanceof PatternError) return null;
    throw error;
  }
}

describe('classes and cases are those of RE2', () => {
  it.each([
    ["match('é', '\\\\w')", false],
    ["match('é', '^\\\\W$')", true],
    ["match('٣', '\\\\d')", false],
    ["match('a\\u00a0b', '\\\\s')", false],
    ["match('É', '(?i)é')", true],
    ["match('K', '(?i)[j-l]')", true],
    ["match('a b', '(?i:A) b')", true],
    ["match('AB', '(?i:a)b')", false],
    ["match('éa', '\\\\ba')", true],
    ["match('a', '[[:^alpha:]]')", false],
    ["match('a.c', '\\\\Qa.c\\\\E')", true],
    ["extract('a\\nb', '(?-s)a[^b]b')", 'a\nb'],
    ["extract('x1', '(?P<letter>[a-z])\\\\d')", 'x'],
    ["match('a{b', 'a{b')", true],
  ])('%s', async (expression, expected) => {
    expect(await resultOf(expression)).toBe(expected);
  });
});

describe('a pattern that is not a literal', () => {
  it.each([
    ['a.c', true],
    ['^(?:a|b)[^x]c$', true],
    ['(?i)ABC', true],
    ['a\\.c', false],
  ])('is matched if PostgreSQL reads it as RE2: %s', async (pattern, expected) => {
    const literal = `'${pattern.replaceAll('\\', '\\\\')}'`;
    expect(await resultOf(`match('abc', p) FROM (SELECT ${literal} AS p) AS given`)).toBe(expected);
    expect(await resultOf(`multiMatchAny('abc', [p, p]) FROM (SELECT ${literal} AS p) AS given`)).toBe(
      expected,
    );
  });

  it.each(['\\w', '\\y', '***=a', '(?n)a', 'a(?=b)', '[[:alpha:]]'])(
    'is rejected otherwise: %s',
    async (pattern) => {
      const literal = `'${pattern.replaceAll('\\', '\\\\')}'`;
      await expect(resultOf(`match('abc', p) FROM (SELECT ${literal} AS p) AS given`)).rejects.toMatchObject({
        code: '2201B',
      });
    },
  );
});
