import type { FastifyRequest } from 'fastify';
import type { Settings } from '../config/settings.ts';
import { invalid } from './api_error.ts';

/** A page of a list as every list answers it. */
export interface ListPage<Item> {
  readonly count: number;
  readonly next: string | null;
  readonly previous: string | null;
  readonly results: Item[];
}

type Addressed = Pick<FastifyRequest, 'protocol' | 'host' | 'url'>;
type BaseUrl = Pick<Settings, 'EXPORTD_BASE_URL'>;

/** The address of the service as the caller knows it, without a slash at the end. @throws ApiError 400 */
function baseUrl(request: Addressed, settings: BaseUrl): string {
  const address = settings.EXPORTD_BASE_URL ?? `${request.protocol}://${request.host}`;
  if (!URL.canParse(address)) throw invalid('The header Host is not usable.', null);
  return new URL(address).href.replace(/\/+$/, '');
}

/** The address of something in the project of the request, under the root that the request used. */
export const projectUrl = (request: Addressed, settings: BaseUrl, path: string): string =>
  baseUrl(request, settings) + request.url.split(/[/?]/).slice(0, 4).join('/') + path;

/** The request's own address with other parameters; undefined leaves a parameter out. */
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
  found: { readonly count: number; readonly results: Item[] },
): ListPage<Item> {
  const { limit, offset } = window;
  const at = (start: number) =>
    withParameters(request, settings, {
      limit: String(limit),
      offset: start > 0 ? String(start) : undefined,
    });
  return {
    count: found.count,
    next: offset + limit < found.count ? at(offset + limit) : null,
    previous: offset > 0 ? at(Math.max(0, offset - limit)) : null,
    results: found.results,
  };
}
