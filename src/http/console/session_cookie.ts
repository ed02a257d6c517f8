import type {} from '@fastify/cookie';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Settings } from '../../config/settings.ts';
import { ApiError } from '../api_error.ts';

const cookieName = 'exportd_session';
/** A month: revoking the key ends the session sooner. */
const maxAgeSeconds = 30 * 86_400;

/** Scripts cannot read it, and browsers send it with requests of this site alone. */
const attributesOf = (request: FastifyRequest, settings: Pick<Settings, 'EXPORTD_BASE_URL'>) => ({
  path: '/',
  httpOnly: true,
  sameSite: 'strict' as const,
  secure: request.protocol === 'https' || settings.EXPORTD_BASE_URL?.startsWith('https:') === true,
});

/** Keeps the API key in the browser. */
export const setSessionCookie = (
  request: FastifyRequest,
  reply: FastifyReply,
  settings: Pick<Settings, 'EXPORTD_BASE_URL'>,
  key: string,
): FastifyReply =>
  reply.setCookie(cookieName, key, { ...attributesOf(request, settings), maxAge: maxAgeSeconds });

/** Removes the API key from the browser. */
export const clearSessionCookie = (
  request: FastifyRequest,
  reply: FastifyReply,
  settings: Pick<Settings, 'EXPORTD_BASE_URL'>,
): FastifyReply => reply.clearCookie(cookieName, attributesOf(request, settings));

/** The API key of the cookie; undefined without one. */
export const sessionKeyOf = (request: FastifyRequest): string | undefined => {
  // The plugin is not registered when the console is off.
  const { cookies } = request as { cookies?: FastifyRequest['cookies'] };
  const key = cookies?.[cookieName];
  return key === '' ? undefined : key;
};

const safeMethods = new Set(['GET', 'HEAD']);

/**
 * Rejects a request that changes something and that another site may have made a browser send. Other sites can set no such
 * header without a preflight, which is never granted, and the browser says where a request comes from.
 * @throws ApiError 403
 */
export function requireSameOrigin(request: FastifyRequest): void {
  if (safeMethods.has(request.method)) return;
  if (request.headers['x-exportd-console'] === '1' && isSameOrigin(request)) return;
  throw new ApiError(
    403,
    'csrf_failed',
    'A request with the cookie of the console needs the header "X-Exportd-Console: 1" and must come from the console itself. Scripts send the header "Authorization: Bearer <personal API key>" instead.',
  );
}

/** Browsers send `Sec-Fetch-Site` over https and on localhost, `Origin` everywhere. */
function isSameOrigin({ headers, host }: FastifyRequest): boolean {
  const site = headers['sec-fetch-site'];
  if (site !== undefined) return site === 'same-origin';
  const origin = URL.parse(headers.origin ?? '');
  // An origin leaves out the default port of its scheme, which a proxy may add to the host.
  return origin !== null && origin.host === URL.parse(`${origin.protocol}//${host}`)?.host;
}
