/** How requests to others leave this process: directly, or through the proxies of its environment. */
import { Agent as HttpAgent, type IncomingMessage, request as httpRequest } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { isIP, isIPv4, type LookupFunction } from 'node:net';
import { limitInterimAnswers } from './interim_answers.ts';
import {
  type AllowedPrivateAddresses,
  loopbackNetworks,
  networks,
  publicAddressLookup,
} from './outgoing_url.ts';

/** What is reached without a proxy: `*` for all, a name with all names below it, or addresses; `port` for one port of it. */
interface ProxyBypass {
  readonly host: string;
  readonly port: string | undefined;
}

/** The settings of the environment's proxies. */
export interface Proxies {
  readonly HTTP_PROXY?: string | undefined;
  readonly HTTPS_PROXY?: string | undefined;
  readonly NO_PROXY?: readonly ProxyBypass[] | undefined;
}

/** The setting of a proxy, which messages name: its value may hold a password. */
export type ProxyName = 'HTTP_PROXY' | 'HTTPS_PROXY';

/** Whether there is a proxy. */
export const hasProxy = ({ HTTP_PROXY, HTTPS_PROXY }: Proxies): boolean =>
  HTTP_PROXY !== undefined || HTTPS_PROXY !== undefined;

/** What a request is sent to; a URL is one. */
interface Target {
  readonly protocol: string;
  readonly hostname: string;
  readonly port?: string | number | undefined;
}

/** This machine is never reached through another one: for a proxy, these addresses are its own. */
const ownHosts: readonly ProxyBypass[] = ['localhost', ...loopbackNetworks].map((host) => ({
  host,
  port: undefined,
}));

/** The proxy that a request goes through; undefined if it goes directly. Names are compared, and resolved by nothing. */
export function proxyOf(
  { protocol, hostname, port }: Target,
  { NO_PROXY = [], ...urls }: Proxies,
): ProxyName | undefined {
  const isSecure = protocol === 'https:';
  const name = isSecure ? 'HTTPS_PROXY' : 'HTTP_PROXY';
  if (urls[name] === undefined) return undefined;
  const host = hostname
    .toLowerCase()
    .replace(/^\[|\]$/g, '')
    .replace(/\.$/, '');
  const actualPort = port === undefined || port === '' ? (isSecure ? '443' : '80') : String(port);
  const isBypassed = [...ownHosts, ...NO_PROXY].some(
    (bypass) => (bypass.port ?? actualPort) === actualPort && includesHost(bypass.host, host),
  );
  return isBypassed ? undefined : name;
}

function includesHost(listed: string, host: string): boolean {
  if (listed === '*') return true;
  if (isIP(listed.split('/')[0] ?? '') === 0) return host === listed || host.endsWith(`.${listed}`);
  return isIP(host) !== 0 && networks([listed]).check(host, isIPv4(host) ? 'ipv4' : 'ipv6');
}

/** Options of an agent that connects through the proxies. Node does the rest. */
export const throughProxies = <Options extends object>(
  { HTTP_PROXY, HTTPS_PROXY }: Proxies,
  options: Options,
): Options => ({ ...options, proxyEnv: { HTTP_PROXY, HTTPS_PROXY } });

/** Options of an agent for requests to one URL. */
export const agentOptionsFor = <Options extends object>(
  url: string,
  proxies: Proxies,
  options: Options,
): Options => (proxyOf(new URL(url), proxies) === undefined ? options : throughProxies(proxies, options));

/** Why a proxy did not connect a request: it is down, or it refused with a status, or without one. */
export interface ProxyProblem {
  readonly isDown: boolean;
  readonly status: number | undefined;
  /** Node's code of the error. */
  readonly code: string;
}

/** Codes of a connection that was never made, which of a proxied request is that to the proxy. */
const notConnected: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
]);

/** What the error of a proxied request says of its proxy; undefined if it is of the server behind it, or of neither alone. */
export function proxyProblemOf(error: unknown): ProxyProblem | undefined {
  const { code = '', statusCode } = error as { readonly code?: string; readonly statusCode?: number };
  if (notConnected.has(code)) return { isDown: true, status: undefined, code };
  return code === 'ERR_PROXY_TUNNEL' ? { isDown: false, status: statusCode, code } : undefined;
}

/**
 * Rejects a host whose name leads to a private address. For requests through a proxy, which does not ask
 * `publicAddressLookup`: the proxy resolves the name itself, and decides about names that are known to it alone.
 * @param createError creates the error to reject with
 */
export const requirePublicHost = (
  host: string,
  allowed: AllowedPrivateAddresses,
  createError: () => Error,
): Promise<void> =>
  new Promise((resolve, reject) => {
    let blocked: Error | undefined;
    const lookup = publicAddressLookup(allowed, () => (blocked = createError()));
    lookup(host.replace(/^\[|\]$/g, ''), { all: true }, () => {
      if (blocked) reject(blocked);
      else resolve();
    });
  });

/** A request that is sent once, over a connection of its own. */
interface Post {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly signal: AbortSignal;
  readonly lookup?: LookupFunction;
  /** After more interim answers the request fails. */
  readonly maxInterimAnswers: number;
}

/** Sends a POST. Follows no redirects. @returns the response, whose body is not read yet */
export function post(
  url: string,
  proxies: Proxies,
  { headers, body, signal, lookup, maxInterimAnswers }: Post,
): Promise<IncomingMessage> {
  const isSecure = url.startsWith('https:');
  const Agent = isSecure ? HttpsAgent : HttpAgent;
  return new Promise((resolve, reject) => {
    const sent = (isSecure ? httpsRequest : httpRequest)(url, {
      method: 'POST',
      headers: { ...headers, 'content-length': String(Buffer.byteLength(body)) },
      agent: new Agent(agentOptionsFor(url, proxies, { keepAlive: false })),
      signal,
      ...(lookup && { lookup }),
    });
    limitInterimAnswers(sent, maxInterimAnswers);
    sent.on('error', reject);
    sent.on('response', resolve);
    sent.end(body);
  });
}
