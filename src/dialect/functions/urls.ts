import { urlEmitters } from './emit/urls.ts';
import { scalar, type FunctionDefinition } from './function_definition.ts';

/** Functions of URLs. */
export const urlFunctions: readonly FunctionDefinition[] = [
  scalar('protocol', ['string'], 'string', 'The scheme of a URL.', {
    sql: urlEmitters.protocol,
    cases: { "protocol('https://a.b/c')": 'https', "protocol('mailto:x')": '', 'protocol(NULL)': null },
  }),
  scalar('domain', ['string'], 'string', 'The host of a URL.', {
    sql: urlEmitters.domain,
    cases: {
      "domain('https://www.example.com:8080/a?b#c')": 'www.example.com',
      "domain('http://user:pw@example.com/')": '',
      "domain('example.com/path')": 'example.com',
    },
  }),
  scalar('domainWithoutWWW', ['string'], 'string', 'The host without www.', {
    sql: urlEmitters.domainWithoutWWW,
    cases: {
      "domainWithoutWWW('https://www.example.com/a')": 'example.com',
      "domainWithoutWWW('')": '',
      'domainWithoutWWW(NULL)': null,
    },
  }),
  scalar('topLevelDomain', ['string'], 'string', 'The last part of the host.', {
    sql: urlEmitters.topLevelDomain,
    cases: {
      "topLevelDomain('https://www.example.com/a')": 'com',
      "topLevelDomain('https://example.co.uk')": 'uk',
      "topLevelDomain('')": '',
    },
  }),
  scalar('cutToFirstSignificantSubdomain', ['string'], 'string', 'The host from the registered name on.', {
    sql: urlEmitters.cutToFirstSignificantSubdomain,
    cases: {
      "cutToFirstSignificantSubdomain('https://news.example.com/a')": 'example.com',
      "cutToFirstSignificantSubdomain('https://news.example.com.tr/')": 'example.com.tr',
      "cutToFirstSignificantSubdomain('https://www.tr/')": 'tr',
    },
  }),
  scalar('port', ['string', 'integer?'], 'integer', 'The port of a URL, or 0.', {
    sql: urlEmitters.port,
    cases: {
      "port('https://example.com:8080/a')": 8080,
      "port('https://example.com/a')": 0,
      "port('example.com:80')": 80,
    },
  }),
  scalar('path', ['string'], 'string', 'The path of a URL.', {
    sql: urlEmitters.path,
    cases: {
      "path('https://example.com/a/b?c#d')": '/a/b',
      "path('https://example.com')": '',
      "path('example.com/a')": '/a',
    },
  }),
  scalar('pathFull', ['string'], 'string', 'The path with query and fragment.', {
    sql: urlEmitters.pathFull,
    cases: {
      "pathFull('https://example.com/a/b?c=1#d')": '/a/b?c=1#d',
      "pathFull('https://example.com')": '',
      "pathFull('https://example.com/?a')": '/?a',
    },
  }),
  scalar('queryString', ['string'], 'string', 'The query of a URL.', {
    sql: urlEmitters.queryString,
    cases: {
      "queryString('https://example.com/a?b=1&c=2#d')": 'b=1&c=2',
      "queryString('https://example.com/a')": '',
      "queryString('a?b')": 'b',
    },
  }),
  scalar('fragment', ['string'], 'string', 'The fragment of a URL.', {
    sql: urlEmitters.fragment,
    cases: {
      "fragment('https://example.com/a?b#c')": 'c',
      "fragment('https://example.com/a')": '',
      'fragment(NULL)': null,
    },
  }),
  scalar('extractURLParameter', ['string', 'string'], 'string', 'A query parameter of a URL.', {
    sql: urlEmitters.extractURLParameter,
    cases: {
      "extractURLParameter('https://example.com/?a=1&b=2', 'b')": '2',
      "extractURLParameter('https://example.com/?a=1', 'x')": '',
      "extractURLParameter('https://x/#a=5', 'a')": '5',
    },
  }),
  scalar('extractURLParameters', ['string'], 'array(string)', 'All query parameters of a URL.', {
    sql: urlEmitters.extractURLParameters,
    cases: {
      "extractURLParameters('https://example.com/?a=1&b=2#c=3')": ['a=1', 'b=2', 'c=3'],
      "extractURLParameters('https://example.com/')": [],
      "extractURLParameters('https://x/?a&b=1')": ['a', 'b=1'],
    },
  }),
  scalar('cutQueryString', ['string'], 'string', 'The URL without its query.', {
    sql: urlEmitters.cutQueryString,
    cases: {
      "cutQueryString('https://example.com/a?b=1#c')": 'https://example.com/a#c',
      "cutQueryString('https://example.com/a')": 'https://example.com/a',
      "cutQueryString('')": '',
    },
  }),
  scalar('cutQueryStringAndFragment', ['string'], 'string', 'The URL without query and fragment.', {
    sql: urlEmitters.cutQueryStringAndFragment,
    cases: {
      "cutQueryStringAndFragment('https://example.com/a?b=1#c')": 'https://example.com/a',
      "cutQueryStringAndFragment('')": '',
      "cutQueryStringAndFragment('x?y')": 'x',
    },
  }),
  scalar('cutURLParameter', ['string', 'string'], 'string', 'The URL without a query parameter.', {
    sql: urlEmitters.cutURLParameter,
    cases: {
      "cutURLParameter('https://x/?a=1&b=2&c=3', 'b')": 'https://x/?a=1&c=3',
      "cutURLParameter('https://x/?a=1', 'a')": 'https://x/?',
      "cutURLParameter('https://x/?a=1&b=2', 'z')": 'https://x/?a=1&b=2',
    },
  }),
  scalar('decodeURLComponent', ['string'], 'string', 'A string with %XX decoded.', {
    sql: urlEmitters.decodeURLComponent,
    cases: {
      "decodeURLComponent('a%20b')": 'a b',
      "decodeURLComponent('')": '',
      "decodeURLComponent('abc')": 'abc',
    },
  }),
  scalar('encodeURLComponent', ['string'], 'string', 'A string with %XX encoding.', {
    sql: urlEmitters.encodeURLComponent,
    cases: {
      "encodeURLComponent('a b')": 'a%20b',
      "encodeURLComponent('')": '',
      "encodeURLComponent('abc')": 'abc',
    },
  }),
];
