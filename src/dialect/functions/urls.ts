import { urlEmitters } from './emit/urls.ts';
import { scalar, type FunctionDefinition } from './function_definition.ts';

/** Functions of URLs. */
export const urlFunctions: readonly FunctionDefinition[] = [
  scalar('protocol', ['string'], 'string', 'The scheme of a URL.', {
    sql: urlEmitters.protocol,
  }),
  scalar('domain', ['string'], 'string', 'The host of a URL.', {
    sql: urlEmitters.domain,
  }),
  scalar('domainWithoutWWW', ['string'], 'string', 'The host without www.', {
    sql: urlEmitters.domainWithoutWWW,
  }),
  scalar('topLevelDomain', ['string'], 'string', 'The last part of the host.', {
    sql: urlEmitters.topLevelDomain,
  }),
  scalar('cutToFirstSignificantSubdomain', ['string'], 'string', 'The host from the registered name on.', {
    sql: urlEmitters.cutToFirstSignificantSubdomain,
  }),
  scalar('port', ['string', 'integer?'], 'integer', 'The port of a URL, or 0.', {
    sql: urlEmitters.port,
  }),
  scalar('path', ['string'], 'string', 'The path of a URL.', {
    sql: urlEmitters.path,
  }),
  scalar('pathFull', ['string'], 'string', 'The path with query and fragment.', {
    sql: urlEmitters.pathFull,
  }),
  scalar('queryString', ['string'], 'string', 'The query of a URL.', {
    sql: urlEmitters.queryString,
  }),
  scalar('fragment', ['string'], 'string', 'The fragment of a URL.', {
    sql: urlEmitters.fragment,
  }),
  scalar('extractURLParameter', ['string', 'string'], 'string', 'A query parameter of a URL.', {
    sql: urlEmitters.extractURLParameter,
  }),
  scalar('extractURLParameters', ['string'], 'array(string)', 'All query parameters of a URL.', {
    sql: urlEmitters.extractURLParameters,
  }),
  scalar('cutQueryString', ['string'], 'string', 'The URL without its query.', {
    sql: urlEmitters.cutQueryString,
  }),
  scalar('cutQueryStringAndFragment', ['string'], 'string', 'The URL without query and fragment.', {
    sql: urlEmitters.cutQueryStringAndFragment,
  }),
  scalar('cutURLParameter', ['string', 'string'], 'string', 'The URL without a query parameter.', {
    sql: urlEmitters.cutURLParameter,
  }),
  scalar('decodeURLComponent', ['string'], 'string', 'A string with %XX decoded.', {
    sql: urlEmitters.decodeURLComponent,
  }),
  scalar('encodeURLComponent', ['string'], 'string', 'A string with %XX encoding.', {
    sql: urlEmitters.encodeURLComponent,
  }),
];
