import type { FastifyRequest } from 'fastify';
import type { Settings } from '../config/settings.ts';
import { invalid } from './api_error.ts';

export type Addressed = Pick<FastifyRequest, 'protocol' | 'host' | 'hostname' | 'url' | 'socket' | 'ips'>;
export type BaseUrl = Pick<Settings, 'EXPORTD_BASE_URL'>;

/**
 * The base URL of the service as the caller sees it, without a trailing slash. Without EXPORTD_BASE_URL, a Host header is
 * believed only if it names this machine or comes from a trusted proxy: links with another host would lead readers of a
 * response elsewhere. @throws ApiError 400
 */
function baseUrl(request: Addressed, settings: BaseUrl): string {
  const address =
    settings.EXPORTD_BASE_URL ??
    `${request.protocol}://${isOwnHost(request) ? request.host : localHost(request)}`;
  if (!URL.canParse(address)) throw invalid('The Host header is not a valid host name.', null);
  return new URL(address).href.replace(/\/+$/, '');
}

const loopback = /^(localhost|127(\.\d{1,3}){3}|\[?::1\]?)$/i;

const withoutMapping = (address: string): string => address.replace(/^::ffff:(?=\d+\.)/i, '');

/** Whether the host of a request is the machine itself, or what a trusted proxy says. */
function isOwnHost({ hostname, ips, socket }: Addressed): boolean {
  if (ips !== undefined && ips.length > 1) return true;
  return (
    loopback.test(hostname) || hostname.replace(/^\[|\]$/g, '') === withoutMapping(socket.localAddress ?? '')
  );
}

/** The address that a request was sent to. */
function localHost({ socket }: Addressed): string {
  const address = withoutMapping(socket.localAddress ?? '127.0.0.1');
  const host = address.includes(':') ? `[${address}]` : address;
  return socket.localPort === undefined ? host : `${host}:${socket.localPort}`;
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
