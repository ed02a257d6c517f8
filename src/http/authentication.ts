import { timingSafeEqual } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import type { Pool } from '../journal/database.ts';
import { ApiError, notFound } from './api_error.ts';
import { hashOfKey, type Scope } from './accounts.ts';
import { requireSameOrigin, sessionKeyOf } from './console/session_cookie.ts';

/** The owner of the API key, and the project and scopes that it grants. */
export interface Caller {
  readonly key_id: string;
  readonly user_id: number;
  readonly project_id: number;
  readonly scopes: readonly string[];
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Set before the handler of every route that requires a key. */
    caller: Caller | null;
  }
  interface FastifyContextConfig {
    /** The required scope; without one, the route accepts any valid key. */
    scope?: Scope;
  }
}

/** The caller of a route that requires a key. */
export function callerOf(request: FastifyRequest): Caller {
  if (!request.caller) throw new Error('This route was registered without authentication.');
  return request.caller;
}

const unauthenticated = (code: string, detail: string): ApiError =>
  new ApiError(401, code, detail, { headers: { 'www-authenticate': 'Bearer' } });

/**
 * Checks the key of a request, then its project, then its scope. Paths of other projects respond 404, so a key reveals
 * nothing about them. The key is that of the header, or of the console's cookie.
 * @throws ApiError 401, 404 or 403.
 */
export async function authenticate(pool: Pool, request: FastifyRequest): Promise<void> {
  const caller = await callerOfKey(pool, keyOf(request));
  if (!caller) throw unauthenticated('authentication_failed', 'The personal API key is unknown or revoked.');
  const { project_id } = request.params as { project_id?: string };
  if (project_id !== undefined && project_id !== String(caller.project_id)) throw notFound();
  const { scope } = request.routeOptions.config;
  if (scope !== undefined && !caller.scopes.includes(scope))
    throw new ApiError(403, 'permission_denied', `The API key lacks the required scope '${scope}'.`);
  request.caller = caller;
}

function keyOf(request: FastifyRequest): string {
  const { authorization } = request.headers;
  const [, key] = /^Bearer +(\S+) *$/i.exec(authorization ?? '') ?? [];
  if (key !== undefined) return key;
  const sessionKey = authorization ? undefined : sessionKeyOf(request);
  if (sessionKey === undefined)
    throw unauthenticated(
      'not_authenticated',
      'No API key was sent. Send the header "Authorization: Bearer <personal API key>".',
    );
  requireSameOrigin(request);
  return sessionKey;
}

/** The owner of an API key; undefined if it is unknown or revoked. */
export async function callerOfKey(pool: Pool, key: string): Promise<Caller | undefined> {
  const hash = hashOfKey(key);
  const { rows } = await pool.query<Caller & { key_hash: Buffer }>(
    `select id as key_id, user_id, project_id, scopes, key_hash from exportd.api_keys where key_hash = $1 and revoked_at is null`,
    [hash],
  );
  const [found] = rows;
  if (!found || !timingSafeEqual(found.key_hash, hash)) return undefined;
  const { key_id, user_id, project_id, scopes } = found;
  return { key_id, user_id, project_id, scopes };
}
