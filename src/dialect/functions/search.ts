import { stringSearchEmitters } from './emit/string_search.ts';
import { scalar, standardScalar, type FunctionDefinition } from './function_definition.ts';

/** Search and replacement, also by regular expressions. */
export const searchFunctions: readonly FunctionDefinition[] = [
  scalar('startsWith', ['string', 'string'], 'boolean', 'Whether a string starts with another.', {
    sql: stringSearchEmitters.startsWith,
    cases: {
      "startsWith('abc', 'ab')": true,
      "startsWith('abc', 'b')": false,
      "startsWith(NULL, 'a')": null,
    },
  }),
  scalar('endsWith', ['string', 'string'], 'boolean', 'Whether a string ends with another.', {
    sql: stringSearchEmitters.endsWith,
    cases: { "endsWith('abc', 'bc')": true, "endsWith('abc', 'b')": false, "endsWith(NULL, 'a')": null },
  }),
  scalar(
    'position',
    ['string', 'string', 'integer?'],
    'integer',
    'The position of a substring, from 1; 0 if not found.',
    {
      ranges: [{ index: 2, min: 0 }],
      sql: stringSearchEmitters.position,
      cases: { "position('abcabc', 'b')": 2, "position('abcabc', 'b', 3)": 5, "position('abc', 'x')": 0 },
    },
  ),
  scalar(
    'positionCaseInsensitive',
    ['string', 'string', 'integer?'],
    'integer',
    'The same, case-insensitive.',
    {
      ranges: [{ index: 2, min: 0 }],
      sql: stringSearchEmitters.positionCaseInsensitive,
      cases: {
        "positionCaseInsensitive('ABC', 'b')": 2,
        "positionCaseInsensitive('abcABC', 'B', 3)": 5,
        "positionCaseInsensitive('abc', 'x')": 0,
      },
    },
  ),
  scalar(
    'locate',
    ['string', 'string', 'integer?'],
    'integer',
    'The position of the first string in the second.',
    {
      ranges: [{ index: 2, min: 0 }],
      sql: stringSearchEmitters.locate,
      cases: { "locate('b', 'abc')": 2, "locate('x', 'abc')": 0, "locate('', 'abc')": 1 },
    },
  ),
  scalar('match', ['string', 'string'], 'boolean', 'Whether a string matches a regular expression.', {
    sql: stringSearchEmitters.match,
    cases: { "match('abc', 'b')": true, "match('abc', '^b')": false, "match(nullIf('a', 'a'), 'a')": false },
  }),
  scalar(
    'multiMatchAny',
    ['string', 'array(string)'],
    'boolean',
    'Whether a string matches any of several regular expressions.',
    {
      sql: stringSearchEmitters.multiMatchAny,
      cases: { "multiMatchAny('abc', ['x', 'b'])": true, "multiMatchAny('abc', ['x', 'y'])": false },
    },
  ),
  scalar('extract', ['string', 'string'], 'string', 'The first match of a regular expression.', {
    sql: stringSearchEmitters.extract,
    cases: {
      "extract('abc123def', '\\\\d+')": '123',
      "extract('abc123def', '([a-z]+)(\\\\d+)')": 'abc',
      "extract('abc', 'x')": '',
    },
  }),
  scalar('extractAll', ['string', 'string'], 'array(string)', 'All matches of a regular expression.', {
    sql: stringSearchEmitters.extractAll,
    cases: {
      "extractAll('a1b22c333', '\\\\d+')": ['1', '22', '333'],
      "extractAll('a1b22', '([a-z])(\\\\d+)')": ['a', 'b'],
      "extractAll('abc', 'x')": [],
    },
  }),
  scalar('extractGroups', ['string', 'string'], 'array(string)', 'The groups of the first match.', {
    sql: stringSearchEmitters.extractGroups,
    cases: {
      "extractGroups('abc123', '([a-z]+)(\\\\d+)')": ['abc', '123'],
      "extractGroups('abc', '(x)')": [],
      "extractGroups('key=value', '(\\\\w+)=(\\\\w+)')": ['key', 'value'],
    },
  }),
  scalar('regexpExtract', ['string', 'string', 'integer?'], 'string', 'A group of the first match.', {
    ranges: [{ index: 2, min: 0 }],
    sql: stringSearchEmitters.regexpExtract,
    cases: {
      "regexpExtract('100-200', '(\\\\d+)-(\\\\d+)', 1)": '100',
      "regexpExtract('100-200', '(\\\\d+)-(\\\\d+)', 2)": '200',
      "regexpExtract('100-200', '(\\\\d+)-(\\\\d+)', 0)": '100-200',
    },
  }),
  scalar('countSubstrings', ['string', 'string'], 'integer', 'Number of occurrences of a substring.', {
    sql: stringSearchEmitters.countSubstrings,
    cases: {
      "countSubstrings('abcabc', 'b')": 2,
      "countSubstrings('abc', 'x')": 0,
      "countSubstrings(NULL, 'a')": null,
    },
  }),
  scalar('countMatches', ['string', 'string'], 'integer', 'Number of matches of a regular expression.', {
    sql: stringSearchEmitters.countMatches,
    cases: {
      "countMatches('a1b22', '\\\\d+')": 2,
      "countMatches('abc', 'x')": 0,
      "countMatches('aaa', 'a')": 3,
    },
  }),
  scalar('hasToken', ['string', 'string'], 'boolean', 'Whether a string contains a word.', {
    sql: stringSearchEmitters.hasToken,
    cases: { "hasToken('hello world', 'world')": true, "hasToken('hello world', 'wor')": false },
  }),
  scalar(
    'replaceOne',
    ['string', 'string', 'string'],
    'string',
    'The first occurrence of a substring replaced.',
    {
      sql: stringSearchEmitters.replaceOne,
      cases: {
        "replaceOne('abab', 'a', 'x')": 'xbab',
        "replaceOne('abc', 'x', 'y')": 'abc',
        "replaceOne('', 'a', 'b')": '',
      },
    },
  ),
  scalar('replaceAll', ['string', 'string', 'string'], 'string', 'All occurrences of a substring replaced.', {
    sql: stringSearchEmitters.replaceAll,
    cases: {
      "replaceAll('abab', 'a', 'x')": 'xbxb',
      "replaceAll('abc', 'x', 'y')": 'abc',
      "replaceAll('', 'a', 'b')": '',
    },
  }),
  standardScalar(
    'replace',
    ['string', 'string', 'string'],
    'string',
    'All occurrences of a substring replaced.',
    {
      sql: 'replace($1, $2, $3)',
      cases: {
        "replace('abab', 'a', 'x')": 'xbxb',
        "replace('abc', 'b', '')": 'ac',
        "replace('', 'a', 'b')": '',
      },
    },
  ),
  scalar(
    'replaceRegexpOne',
    ['string', 'string', 'string'],
    'string',
    'The first match of a regular expression replaced.',
    {
      sql: stringSearchEmitters.replaceRegexpOne,
      cases: {
        "replaceRegexpOne('a1b2', '\\\\d', 'x')": 'axb2',
        "replaceRegexpOne('abc', 'x', 'y')": 'abc',
        "replaceRegexpOne('abc', '(b)', '[\\\\1]')": 'a[b]c',
      },
    },
  ),
  scalar(
    'replaceRegexpAll',
    ['string', 'string', 'string'],
    'string',
    'All matches of a regular expression replaced.',
    {
      sql: stringSearchEmitters.replaceRegexpAll,
      cases: {
        "replaceRegexpAll('a1b2', '\\\\d', 'x')": 'axbx',
        "replaceRegexpAll('abc', 'x', 'y')": 'abc',
        "replaceRegexpAll('abab', '(b)', '[\\\\1]')": 'a[b]a[b]',
      },
    },
  ),
  scalar('translate', ['string', 'string', 'string'], 'string', 'Characters replaced by others.', {
    sql: 'translate($1, $2, $3)',
    cases: {
      "translate('hello', 'el', 'ip')": 'hippo',
      "translate('abc', 'x', 'y')": 'abc',
      "translate('', 'a', 'b')": '',
    },
  }),
];
