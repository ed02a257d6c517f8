import type { CasesByFunction } from './case_rows.ts';

/** Cases of functions of strings, patterns and URLs. */
export const stringCases: CasesByFunction = {
  length: { "length('abc')": 3, "length('')": 0, "length('äö')": 4 },
  lengthUTF8: { "lengthUTF8('abc')": 3, "lengthUTF8('')": 0, "lengthUTF8('äö')": 2 },
  lower: { "lower('ABC')": 'abc', "lower('')": '', "lower('ÄB')": 'Äb' },
  upper: { "upper('abc')": 'ABC', "upper('')": '', "upper('äb')": 'äB' },
  concat: { "concat('a', 'b')": 'ab', "concat('a', 1)": 'a1', "concat('', '')": '' },
  concatWithSeparator: {
    "concatWithSeparator(',', 'a', 'b')": 'a,b',
    "concatWithSeparator(',', 'a')": 'a',
    "concatWithSeparator('', 'a', 'b')": 'ab',
  },
  substring: {
    "substring('abcdef', 2)": 'bcdef',
    "substring('abcdef', 2, 3)": 'bcd',
    "substring('abcdef', -3)": 'def',
  },
  left: { "left('abc', 2)": 'ab', "left('abc', 0)": '', "left('abc', 10)": 'abc' },
  right: { "right('abc', 2)": 'bc', "right('abc', 0)": '', "right('abc', 10)": 'abc' },
  reverse: { "reverse('abc')": 'cba', "reverse('')": '', "reverse('a')": 'a' },
  repeat: { "repeat('ab', 3)": 'ababab', "repeat('ab', 0)": '', 'repeat(NULL, 2)': null },
  trim: { "trim('  a b  ')": 'a b', "trim('')": '', "trim('abc')": 'abc' },
  trimLeft: { "trimLeft('  ab ')": 'ab ', "trimLeft('')": '', "trimLeft('ab')": 'ab' },
  trimRight: { "trimRight(' ab  ')": ' ab', "trimRight('')": '', "trimRight('ab')": 'ab' },
  leftPad: { "leftPad('abc', 5)": '  abc', "leftPad('abc', 5, '*')": '**abc', "leftPad('abc', 2)": 'ab' },
  rightPad: { "rightPad('abc', 5)": 'abc  ', "rightPad('abc', 5, '*')": 'abc**', "rightPad('abc', 2)": 'ab' },
  empty: { "empty('')": true, "empty('a')": false, 'empty(NULL)': null },
  notEmpty: { "notEmpty('')": false, "notEmpty('a')": true, 'notEmpty(NULL)': null },
  format: {
    "format('{} {}', 'a', 'b')": 'a b',
    "format('{1} {0}', 'a', 'b')": 'b a',
    "format('x', 'a')": 'x',
  },
  initcap: { "initcap('hello world')": 'Hello World', "initcap('HELLO')": 'Hello', "initcap('')": '' },
  ascii: { "ascii('a')": 97, "ascii('')": 0, "ascii('A')": 65 },
  base64Encode: {
    "base64Encode('abc')": 'YWJj',
    "base64Encode('')": '',
    "base64Encode('Hello, World!')": 'SGVsbG8sIFdvcmxkIQ==',
  },
  base64Decode: {
    "base64Decode('YWJj')": 'abc',
    "base64Decode('')": '',
    "base64Decode('SGVsbG8sIFdvcmxkIQ==')": 'Hello, World!',
  },
  md5: {
    "md5('abc')": '900150983cd24fb0d6963f7d28e17f72',
    "md5('')": 'd41d8cd98f00b204e9800998ecf8427e',
    'md5(NULL)': null,
  },
  splitByChar: {
    "splitByChar(',', 'a,b,c')": ['a', 'b', 'c'],
    "splitByChar(',', 'abc')": ['abc'],
    "splitByChar(',', '')": [''],
  },
  splitByString: {
    "splitByString(', ', 'a, b, c')": ['a', 'b', 'c'],
    "splitByString('x', 'abc')": ['abc'],
    "splitByString('ab', '')": [''],
  },
  splitByRegexp: {
    "splitByRegexp('\\\\d+', 'a1b22c')": ['a', 'b', 'c'],
    "splitByRegexp('x', 'abc')": ['abc'],
    "splitByRegexp(',', '')": [''],
  },
  splitByWhitespace: {
    "splitByWhitespace('a  b c')": ['a', 'b', 'c'],
    "splitByWhitespace(' a b ')": ['a', 'b'],
    "splitByWhitespace('')": [],
  },
  alphaTokens: {
    "alphaTokens('abc1de;f')": ['abc', 'de', 'f'],
    "alphaTokens('')": [],
    "alphaTokens('Hello World')": ['Hello', 'World'],
  },
  ngrams: { "ngrams('abcd', 2)": ['ab', 'bc', 'cd'], "ngrams('ab', 3)": [], "ngrams('abc', 3)": ['abc'] },
  startsWith: {
    "startsWith('abc', 'ab')": true,
    "startsWith('abc', 'b')": false,
    "startsWith(NULL, 'a')": null,
  },
  endsWith: { "endsWith('abc', 'bc')": true, "endsWith('abc', 'b')": false, "endsWith(NULL, 'a')": null },
  position: { "position('abcabc', 'b')": 2, "position('abcabc', 'b', 3)": 5, "position('abc', 'x')": 0 },
  positionCaseInsensitive: {
    "positionCaseInsensitive('ABC', 'b')": 2,
    "positionCaseInsensitive('abcABC', 'B', 3)": 5,
    "positionCaseInsensitive('abc', 'x')": 0,
  },
  locate: { "locate('b', 'abc')": 2, "locate('x', 'abc')": 0, "locate('', 'abc')": 1 },
  match: { "match('abc', 'b')": true, "match('abc', '^b')": false, "match(nullIf('a', 'a'), 'a')": null },
  multiMatchAny: { "multiMatchAny('abc', ['x', 'b'])": true, "multiMatchAny('abc', ['x', 'y'])": false },
  extract: {
    "extract('abc123def', '\\\\d+')": '123',
    "extract('abc123def', '([a-z]+)(\\\\d+)')": 'abc',
    "extract('abc', 'x')": '',
  },
  extractAll: {
    "extractAll('a1b22c333', '\\\\d+')": ['1', '22', '333'],
    "extractAll('a1b22', '([a-z])(\\\\d+)')": ['a', 'b'],
    "extractAll('abc', 'x')": [],
  },
  extractGroups: {
    "extractGroups('abc123', '([a-z]+)(\\\\d+)')": ['abc', '123'],
    "extractGroups('abc', '(x)')": [],
    "extractGroups('key=value', '(\\\\w+)=(\\\\w+)')": ['key', 'value'],
  },
  regexpExtract: {
    "regexpExtract('100-200', '(\\\\d+)-(\\\\d+)', 1)": '100',
    "regexpExtract('100-200', '(\\\\d+)-(\\\\d+)', 2)": '200',
    "regexpExtract('100-200', '(\\\\d+)-(\\\\d+)', 0)": '100-200',
  },
  countSubstrings: {
    "countSubstrings('abcabc', 'b')": 2,
    "countSubstrings('abc', 'x')": 0,
    "countSubstrings(NULL, 'a')": null,
  },
  countMatches: {
    "countMatches('a1b22', '\\\\d+')": 2,
    "countMatches('abc', 'x')": 0,
    "countMatches('aaa', 'a')": 3,
  },
  hasToken: { "hasToken('hello world', 'world')": true, "hasToken('hello world', 'wor')": false },
  replaceOne: {
    "replaceOne('abab', 'a', 'x')": 'xbab',
    "replaceOne('abc', 'x', 'y')": 'abc',
    "replaceOne('', 'a', 'b')": '',
  },
  replaceAll: {
    "replaceAll('abab', 'a', 'x')": 'xbxb',
    "replaceAll('abc', 'x', 'y')": 'abc',
    "replaceAll('', 'a', 'b')": '',
  },
  replace: {
    "replace('abab', 'a', 'x')": 'xbxb',
    "replace('abc', 'b', '')": 'ac',
    "replace('', 'a', 'b')": '',
  },
  replaceRegexpOne: {
    "replaceRegexpOne('a1b2', '\\\\d', 'x')": 'axb2',
    "replaceRegexpOne('abc', 'x', 'y')": 'abc',
    "replaceRegexpOne('abc', '(b)', '[\\\\1]')": 'a[b]c',
  },
  replaceRegexpAll: {
    "replaceRegexpAll('a1b2', '\\\\d', 'x')": 'axbx',
    "replaceRegexpAll('abc', 'x', 'y')": 'abc',
    "replaceRegexpAll('abab', '(b)', '[\\\\1]')": 'a[b]a[b]',
  },
  translate: {
    "translate('hello', 'el', 'ip')": 'hippo',
    "translate('abc', 'x', 'y')": 'abc',
    "translate('', 'a', 'b')": '',
  },
  protocol: { "protocol('https://a.b/c')": 'https', "protocol('mailto:x')": '', 'protocol(NULL)': null },
  domain: {
    "domain('https://www.example.com:8080/a?b#c')": 'www.example.com',
    "domain('http://user:pw@example.com/')": '',
    "domain('example.com/path')": 'example.com',
  },
  domainWithoutWWW: {
    "domainWithoutWWW('https://www.example.com/a')": 'example.com',
    "domainWithoutWWW('')": '',
    'domainWithoutWWW(NULL)': null,
  },
  topLevelDomain: {
    "topLevelDomain('https://www.example.com/a')": 'com',
    "topLevelDomain('https://example.co.uk')": 'uk',
    "topLevelDomain('')": '',
  },
  cutToFirstSignificantSubdomain: {
    "cutToFirstSignificantSubdomain('https://news.example.com/a')": 'example.com',
    "cutToFirstSignificantSubdomain('https://news.example.com.tr/')": 'example.com.tr',
    "cutToFirstSignificantSubdomain('https://www.tr/')": 'tr',
  },
  port: {
    "port('https://example.com:8080/a')": 8080,
    "port('https://example.com/a')": 0,
    "port('example.com:80')": 80,
  },
  path: {
    "path('https://example.com/a/b?c#d')": '/a/b',
    "path('https://example.com')": '',
    "path('example.com/a')": '/a',
  },
  pathFull: {
    "pathFull('https://example.com/a/b?c=1#d')": '/a/b?c=1#d',
    "pathFull('https://example.com')": '',
    "pathFull('https://example.com/?a')": '/?a',
  },
  queryString: {
    "queryString('https://example.com/a?b=1&c=2#d')": 'b=1&c=2',
    "queryString('https://example.com/a')": '',
    "queryString('a?b')": 'b',
  },
  fragment: {
    "fragment('https://example.com/a?b#c')": 'c',
    "fragment('https://example.com/a')": '',
    'fragment(NULL)': null,
  },
  extractURLParameter: {
    "extractURLParameter('https://example.com/?a=1&b=2', 'b')": '2',
    "extractURLParameter('https://example.com/?a=1', 'x')": '',
    "extractURLParameter('https://x/#a=5', 'a')": '5',
  },
  extractURLParameters: {
    "extractURLParameters('https://example.com/?a=1&b=2#c=3')": ['a=1', 'b=2', 'c=3'],
    "extractURLParameters('https://example.com/')": [],
    "extractURLParameters('https://x/?a&b=1')": ['a', 'b=1'],
  },
  cutQueryString: {
    "cutQueryString('https://example.com/a?b=1#c')": 'https://example.com/a#c',
    "cutQueryString('https://example.com/a')": 'https://example.com/a',
    "cutQueryString('')": '',
  },
  cutQueryStringAndFragment: {
    "cutQueryStringAndFragment('https://example.com/a?b=1#c')": 'https://example.com/a',
    "cutQueryStringAndFragment('')": '',
    "cutQueryStringAndFragment('x?y')": 'x',
  },
  cutURLParameter: {
    "cutURLParameter('https://x/?a=1&b=2&c=3', 'b')": 'https://x/?a=1&c=3',
    "cutURLParameter('https://x/?a=1', 'a')": 'https://x/?',
    "cutURLParameter('https://x/?a=1&b=2', 'z')": 'https://x/?a=1&b=2',
  },
  decodeURLComponent: {
    "decodeURLComponent('a%20b')": 'a b',
    "decodeURLComponent('')": '',
    "decodeURLComponent('abc')": 'abc',
  },
  encodeURLComponent: {
    "encodeURLComponent('a b')": 'a%20b',
    "encodeURLComponent('')": '',
    "encodeURLComponent('abc')": 'abc',
  },
  lowerUTF8: { "lowerUTF8('ÄB')": 'äb', "lowerUTF8('')": '', 'lowerUTF8(NULL)': null },
  upperUTF8: { "upperUTF8('äx')": 'ÄX', "upperUTF8('')": '' },
  split_part: {
    "split_part('a.b.c', '.', 2)": 'b',
    "split_part('a.b.c', '.', -1)": 'c',
    "split_part('a.b.c', '.', 9)": '',
  },
  countSubstringsCaseInsensitive: {
    "countSubstringsCaseInsensitive('aAbA', 'a')": 3,
    "countSubstringsCaseInsensitive('x', '')": 0,
    "countSubstringsCaseInsensitive('', 'a')": 0,
  },
  countMatchesCaseInsensitive: {
    "countMatchesCaseInsensitive('aAb', 'a')": 2,
    "countMatchesCaseInsensitive('aAb', 'x')": 0,
    "countMatchesCaseInsensitive('foo.COM', '[a-z]+')": 2,
  },
  multiSearchAny: {
    "multiSearchAny('hello', ['x', 'ell'])": 1,
    "multiSearchAny('hello', ['x'])": 0,
    "multiSearchAny('abc', [''])": 1,
  },
  multiSearchAnyCaseInsensitive: {
    "multiSearchAnyCaseInsensitive('Hello', ['h'])": 1,
    "multiSearchAnyCaseInsensitive('Hello', ['x'])": 0,
  },
  multiSearchFirstIndex: {
    "multiSearchFirstIndex('hello', ['x', 'l'])": 2,
    "multiSearchFirstIndex('abc', ['c', 'a'])": 1,
    "multiSearchFirstIndex('abc', ['x'])": 0,
  },
  multiSearchFirstIndexCaseInsensitive: { "multiSearchFirstIndexCaseInsensitive('HELLO', ['x', 'l'])": 2 },
  multiSearchFirstPosition: {
    "multiSearchFirstPosition('hello', ['o', 'l'])": 3,
    "multiSearchFirstPosition('abc', ['x'])": 0,
  },
  multiSearchFirstPositionCaseInsensitive: {
    "multiSearchFirstPositionCaseInsensitive('HELLO', ['o', 'l'])": 3,
  },
  multiSearchAllPositions: {
    "multiSearchAllPositions('hello', ['l', 'x'])": [3, 0],
    "multiSearchAllPositions('abc', ['', 'c'])": [1, 3],
  },
  multiSearchAllPositionsCaseInsensitive: {
    "multiSearchAllPositionsCaseInsensitive('HELLO', ['l', 'x'])": [3, 0],
  },
  extractAllGroupsVertical: {
    "extractAllGroupsVertical('a=1, b=2', '(\\\\w)=(\\\\d)')": [
      ['a', '1'],
      ['b', '2'],
    ],
    "extractAllGroupsVertical('x', '(a)(b)?')": [],
    "extractAllGroupsVertical('ab a', '(a)(b)?')": [
      ['a', 'b'],
      ['a', ''],
    ],
  },
  extractAllGroupsHorizontal: {
    "extractAllGroupsHorizontal('a=1, b=2', '(\\\\w)=(\\\\d)')": [
      ['a', 'b'],
      ['1', '2'],
    ],
    "extractAllGroupsHorizontal('x', '(a)(b)?')": [[], []],
    "extractAllGroupsHorizontal('ab a', '(a)(b)?')": [
      ['a', 'a'],
      ['b', ''],
    ],
  },
  hasTokenCaseInsensitive: {
    "hasTokenCaseInsensitive('Hello World', 'hello')": 1,
    "hasTokenCaseInsensitive('Hello World', 'hell')": 0,
    "hasTokenCaseInsensitive('a_b', 'B')": 1,
  },
  hasAnyTokens: {
    "hasAnyTokens('Hello World', ['World'])": 1,
    "hasAnyTokens('Hello World', 'World x')": 1,
    "hasAnyTokens('Hello World', 'hello')": 0,
  },
  hasAllTokens: {
    "hasAllTokens('Hello World', ['World', 'x'])": 0,
    "hasAllTokens('Hello World', 'World Hello')": 1,
    "hasAllTokens('Hello World', '')": 0,
  },
  splitByNonAlpha: {
    "splitByNonAlpha('a,b c!d')": ['a', 'b', 'c', 'd'],
    "splitByNonAlpha(' user@domain.com  x')": ['user', 'domain', 'com', 'x'],
    "splitByNonAlpha('')": [],
  },
  firstSignificantSubdomain: {
    "firstSignificantSubdomain('https://news.example.co.uk/')": 'example',
    "firstSignificantSubdomain('http://www.example.com/')": 'example',
    "firstSignificantSubdomain('example')": '',
  },
  netloc: {
    "netloc('http://paul@www.example.com:80/a')": 'paul@www.example.com:80',
    "netloc('example.com/a')": 'example.com',
    "netloc('//example.com/a')": 'example.com',
  },
  queryStringAndFragment: {
    "queryStringAndFragment('http://a.de/?x=1#f')": 'x=1#f',
    "queryStringAndFragment('http://a.de/#f')": '#f',
    "queryStringAndFragment('http://a.de/a')": '',
  },
  extractURLParameterNames: {
    "extractURLParameterNames('http://a.de/p?utm=x&b&c=#top=1')": ['utm', 'b', 'c', 'top'],
    "extractURLParameterNames('http://a.de/p?b#top')": ['b'],
    "extractURLParameterNames('http://a.de/p?=1&b=2')": ['', 'b'],
  },
  URLHierarchy: {
    "URLHierarchy('https://example.com/a/b?x#y')": [
      'https://example.com/',
      'https://example.com/a/',
      'https://example.com/a/b?',
      'https://example.com/a/b?x#',
      'https://example.com/a/b?x#y',
    ],
    "URLHierarchy('https://example.com')": ['https://example.com'],
    "URLHierarchy('https://example.com/')": ['https://example.com/'],
  },
  URLPathHierarchy: {
    "URLPathHierarchy('https://example.com/a/b?x#y')": ['/a/', '/a/b?', '/a/b?x#', '/a/b?x#y'],
    "URLPathHierarchy('https://example.com/a/b/')": ['/a/', '/a/b/'],
    "URLPathHierarchy('example.com/a')": [],
  },
  cutFragment: {
    "cutFragment('http://a.de/?x=1#f')": 'http://a.de/?x=1',
    "cutFragment('a#b#c')": 'a',
    "cutFragment('')": '',
  },
  cutWWW: {
    "cutWWW('http://www.example.com/a')": 'http://example.com/a',
    "cutWWW('www.example.com')": 'www.example.com',
    "cutWWW('//www.example.com/a')": '//example.com/a',
  },
};
