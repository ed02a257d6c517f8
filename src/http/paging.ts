import type { FastifyRequest } from 'fastify';
import type { Settings } from '../config/settings.ts';
import { invalid } from './api_error.ts';

/** A page of a list. */
export interface ListPage<Item> {
  readonly count: number;
  readonly next: string | null;
  readonly previous: string | null;
  readonly results: Item[];
}

type Addressed = Pick<FastifyRequest, 'protocol' | 'host' | 'url'>;
type BaseUrl = Pick<Settings, 'EXPORTD_BASE_URL'>;

/** The base URL of the service as the caller sees it, without a trailing slash. @throws ApiError 400 */
function baseUrl(request: Addressed, settings: BaseUrl): string {
  const address = settings.EXPORTD_BASE_URL ?? `${request.protocol}://${request.host}`;
  if (!URL.canParse(address)) throw invalid('The Host header is not a valid host name.', null);
  return new URL(address).href.replace(/\/+$/, '');
}

/** The URL of a path in the request's project, below the root (`projects` or `environments`) that the request used. */
export const projectUrl = (request: Addressed, settings: BaseUrl, path: string): string =>
  baseUrl(request, settings) + request.url.split(/[/?]/).slice(0, 4).join('/') + path;

/** The URL of the request with these query parameters replaced; undefined removes a parameter. */
export function withParameters(
  request: Addressed,
  settings: BaseUrl,
  parameters: Readonly<Record<string, string | undefined>>,
): string {
  const url = new URL(baseUrl(request, settings) + request.url);
  for (const [name, value] of Object.entries(parameters)) {
    url.searchParams.delete(name);
    if (value !== undefined) url.searchParams.set(name, value);
  }
  return url.href;
}

/** A page by `limit` and `offset`. */
export function offsetPage<Item>(
  request: Addressed,
  settings: BaseUrl,
  window: { readonly limit: number; readonly offset: number },
  list: { readonly count: number; readonly results: Item[] },
): ListPage<Item> {
  const { limit, offset } = window;
  const urlAt = (start: number) =>
    withParameters(request, settings, {
      limit: String(limit),
      offset: start > 0 ? String(start) : undefined,
    });
  return {
    count: list.count,
    next: offset + limit < list.count ? urlAt(offset + limit) : null,
    previous: offset > 0 ? urlAt(Math.max(0, offset - limit)) : null,
    results: list.results,
  };
}
