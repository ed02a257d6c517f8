import type { FastifyRequest } from 'fastify';
import { ApiError } from '../api_error.ts';

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
