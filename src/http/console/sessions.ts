import { createHash, randomBytes } from 'node:crypto';
import type {} from '@fastify/cookie';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Settings } from '../../config/settings.ts';
import type { Pool } from '../../journal/database.ts';
import { ApiError } from '../api_error.ts';

type SessionSettings = Pick<
  Settings,
  'EXPORTD_BASE_URL' | 'EXPORTD_SESSION_LIFETIME' | 'EXPORTD_SESSION_IDLE_TIMEOUT'
>;

/** Whether browsers reach exportd by https, as far as it can know. */
const isSecure = (request: FastifyRequest, settings: Pick<Settings, 'EXPORTD_BASE_URL'>): boolean =>
  request.protocol === 'https' || settings.EXPORTD_BASE_URL?.startsWith('https:') === true;

/** Browsers accept a name with `__Host-` over https alone, and from no other host and no other port without https. */
const cookieName = (secure: boolean): string => (secure ? '__Host-exportd_session' : 'exportd_session');

/** Scripts cannot read it, and browsers send it with requests of this site alone. */
const attributesOf = (secure: boolean) => ({
  path: '/',
  httpOnly: true,
  sameSite: 'strict' as const,
  secure,
});

const hashOf = (token: string): Buffer => createHash('sha256').update(token).digest();

const maxUserAgentLength = 200;

/** The header `User-Agent`, cut to a length that can be stored for each request. */
export const userAgentOf = ({ headers }: FastifyRequest): string =>
  (headers['user-agent'] ?? '').slice(0, maxUserAgentLength);

/**
 * SQL condition: a row `session` is neither expired nor idle. Its key has to be active too.
 * @param idleMs the number of the parameter that holds EXPORTD_SESSION_IDLE_TIMEOUT
 */
export const isActiveSession = (idleMs: number): string => `(session.expires_at > clock_timestamp()
  and session.last_seen_at > clock_timestamp() - $${idleMs} * interval '1 millisecond')`;

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
  const secure = isSecure(request, settings);
  void reply.setCookie(cookieName(secure), token, {
    ...attributesOf(secure),
    maxAge: Math.floor(lifetimeMs / 1_000),
  });
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
  const secure = isSecure(request, settings);
  void reply.clearCookie(cookieName(secure), attributesOf(secure));
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
  const token = cookies?.[cookieName(isSecure(request, settings))];
  return token === undefined || token === '' ? undefined : hashOf(token);
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
