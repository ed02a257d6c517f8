/** Sessions of the console: a key signs in once, and a cookie stands for it. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { createHash, randomBytes } from 'node:crypto';
import { basePathOf, type Settings } from '../../config/settings.ts';
import type { Pool } from '../../journal/database.ts';

type SessionSettings = Pick<
  Settings,
  'EXPORTD_BASE_URL' | 'EXPORTD_SESSION_LIFETIME' | 'EXPORTD_SESSION_IDLE_TIMEOUT'
>;

/** Whether browsers reach exportd by https, as far as it can know. */
const isSecure = (request: FastifyRequest, settings: Pick<Settings, 'EXPORTD_BASE_URL'>): boolean =>
  request.protocol === 'https' || settings.EXPORTD_BASE_URL?.startsWith('https:') === true;

/**
 * Browsers accept a name with `__Host-` over https alone, from no other host and no other port without https, and with the path
 * `/` alone. Below another path, `__Secure-` keeps plain http from setting it.
 */
function cookieName(secure: boolean, path: string): string {
  if (!secure) return 'exportd_session';
  return path === '/' ? '__Host-exportd_session' : '__Secure-exportd_session';
}

/** Scripts cannot read it, and browsers send it with requests of this site alone, to no other path of its host. */
function cookieOf(request: FastifyRequest, settings: Pick<Settings, 'EXPORTD_BASE_URL'>) {
  const secure = isSecure(request, settings);
  const path = basePathOf(settings) || '/';
  const attributes = { path, httpOnly: true, sameSite: 'strict' as const, secure };
  return { name: cookieName(secure, path), attributes };
}

const hashOf = (token: string): Buffer => createHash('sha256').update(token).digest();

const maxUserAgentLength = 200;

/** The header `User-Agent`, cut to a length that can be stored for each request. */
export const userAgentOf = ({ headers }: FastifyRequest): string =>
  (headers['user-agent'] ?? '').slice(0, maxUserAgentLength);

/** Signs a browser in with the rights of a key. The cookie holds a random token, of which only the hash is stored. */
export async function startSession(
  pool: Pool,
  settings: SessionSettings,
  keyId: string,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  const token = randomBytes(32).toString('base64url');
  const { EXPORTD_SESSION_LIFETIME: lifetimeMs } = settings;
  await pool.query(
    `insert into exportd.console_sessions (token_hash, key_id, user_agent, address, expires_at)
     values ($1, $2, $3, $4, clock_timestamp() + $5 * interval '1 millisecond')`,
    [hashOf(token), keyId, userAgentOf(request), request.ip, lifetimeMs],
  );
  const { name, attributes } = cookieOf(request, settings);
  void reply.setCookie(name, token, { ...attributes, maxAge: Math.floor(lifetimeMs / 1_000) });
}

/** Removes the session from the browser, and ends it. */
export async function endSession(
  pool: Pool,
  settings: SessionSettings,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  const hash = sessionHashOf(request, settings);
  if (hash) await pool.query('delete from exportd.console_sessions where token_hash = $1', [hash]);
  const { name, attributes } = cookieOf(request, settings);
  void reply.clearCookie(name, attributes);
}

/** Ends all sessions of a user. @returns how many it ended */
export async function endSessionsOfUser(pool: Pool, userId: number): Promise<number> {
  const { rowCount } = await pool.query(
    `delete from exportd.console_sessions session using exportd.api_keys key
     where key.id = session.key_id and key.user_id = $1`,
    [userId],
  );
  return rowCount ?? 0;
}

/** The hash of the token in the cookie; undefined without one. */
export const sessionHashOf = (
  request: FastifyRequest,
  settings: Pick<Settings, 'EXPORTD_BASE_URL'>,
): Buffer | undefined => {
  // The plugin is not registered when the console is off.
  const { cookies } = request as { cookies?: FastifyRequest['cookies'] };
  const token = cookies?.[cookieOf(request, settings).name];
  return token === undefined || token === '' ? undefined : hashOf(token);
};
