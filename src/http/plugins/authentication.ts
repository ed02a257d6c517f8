import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { BlockList, isIP } from 'node:net';
import type {} from '@fastify/cookie';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { createKeyedSemaphore } from '../../concurrency/keyed_semaphore.ts';
import { bounds } from '../../config/bounds.ts';
import { basePathOf, type Settings } from '../../config/settings.ts';
import type { FieldChange } from '../../journal/audit.ts';
import type { Pool } from '../../journal/database.ts';
import type { Logger } from '../../telemetry/logger.ts';
import { hashOfKey, isActiveKey, isKey, requireUser } from '../accounts.ts';
import { ApiError, invalid, notFound, retryAfter } from '../api_error.ts';
import type { Scope } from '../scopes.ts';
import { clientOf, type FailedAuthentication, type Refusals } from './refusals.ts';

/** The owner of the API key, and what it grants. */
export interface Caller {
  readonly key_id: string;
  /** The owner, whose rights the request has. */
  readonly user_id: number;
  /**
   * Who sends it: the user whom a trusted proxy names, else the owner. Recorded, never a reason to grant anything; a disabled
   * one is refused.
   */
  readonly actor_id: number;
  /** The project in the path; the first of the key where the path has none. */
  readonly project_id: number;
  /** All projects of the key. */
  readonly project_ids: readonly number[];
  readonly scopes: readonly string[];
  /** The session of the console that the request belongs to; null with a key in the header. */
  readonly session_id: string | null;
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Set before the handler of every route that requires a key. */
    caller: Caller | null;
    /** What was created, for the audit trail, where no `Location` says it. */
    createdObject: string | null;
    /** The fields that the request has set to another value, for the audit trail; by default those of some bodies. */
    changedFields: readonly FieldChange[] | null;
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

/** @throws ApiError 403 */
export function requireScope({ scopes }: Pick<Caller, 'scopes'>, scope: Scope): void {
  if (!scopes.includes(scope))
    throw new ApiError(403, 'permission_denied', `The API key lacks the required scope '${scope}'.`);
}

/** Finds out who sends a request. */
export interface Authentication {
  /**
   * Checks the key or the session of a request, then its project, then its scope. Paths of other projects respond 404, so
   * a key reveals nothing about them.
   * @throws ApiError 401, 404 or 403; 429 for an invalid key from an address that sent many.
   */
  authenticate(request: FastifyRequest): Promise<void>;
  /**
   * The owner of an API key that a request sent; undefined if it is unknown, expired or revoked.
   * @throws ApiError 429; 403 when a proxy names a disabled user
   */
  callerOfKey(request: FastifyRequest, key: string): Promise<Caller | undefined>;
  /** Who sends a request that needs no key; undefined without a valid key or session. @throws ApiError 429 */
  findCaller(request: FastifyRequest): Promise<Caller | undefined>;
  /** Who is signed in with the cookie of a request; undefined without a session. @throws ApiError 429 */
  callerOfSession(request: FastifyRequest): Promise<Caller | undefined>;
  /** Resolves when the last uses of keys are stored. */
  close(): Promise<void>;
}

const unauthenticated = (code: string, detail: string): ApiError =>
  new ApiError(401, code, detail, { headers: { 'www-authenticate': 'Bearer' } });

type FoundKey = Omit<Caller, 'project_id' | 'actor_id'> & {
  /** Whether this is its first use in this minute. */
  readonly is_new_minute: boolean;
};

const thisMinute = `date_trunc('minute', clock_timestamp())`;
const keyColumns = `key.id as key_id, key.user_id, key.project_ids, key.scopes`;

/** Failed authentications are counted for this long, in milliseconds. */
const failureWindowMs = 60_000;

/** Adds the caller of requests to an application; which routes need one says `authenticate`. It ends with the application. */
export function addAuthentication(
  app: FastifyInstance,
  dependencies: Omit<Parameters<typeof createAuthentication>[0], 'limiter'> & {
    readonly settings: Pick<Settings, 'EXPORTD_MAX_FAILED_AUTHENTICATIONS'>;
  },
): Authentication {
  const { settings, refusals } = dependencies;
  app.decorateRequest('caller', null);
  const limiter = createAuthenticationLimiter({
    maxFailures: settings.EXPORTD_MAX_FAILED_AUTHENTICATIONS,
    windowMs: failureWindowMs,
    now: () => performance.now(),
    onFailure: (outcome, address) => refusals.recordFailedAuthentication(outcome, address),
  });
  const authentication = createAuthentication({ ...dependencies, limiter });
  app.addHook('onClose', () => authentication.close());
  return authentication;
}

/** Authenticates requests with one statement each, without a cache, so that revocation acts at once. */
function createAuthentication({
  pool,
  authenticationPool,
  limiter,
  refusals,
  logger,
  settings,
}: {
  readonly pool: Pool;
  /** Connections of their own, so that keys are found while all others are busy. */
  readonly authenticationPool: Pool;
  readonly limiter: AuthenticationLimiter;
  readonly refusals: Refusals;
  readonly logger: Logger;
  readonly settings: Pick<
    Settings,
    'EXPORTD_BASE_URL' | 'EXPORTD_SESSION_IDLE_TIMEOUT' | 'EXPORTD_TRUSTED_PROXIES' | 'EXPORTD_USER_HEADER'
  >;
}): Authentication {
  const lastUses = createLastUses(pool, logger);
  const idleMs = settings.EXPORTD_SESSION_IDLE_TIMEOUT;

  const namedUser = createNamedUser(settings);

  const toCaller = async (
    request: FastifyRequest,
    found: FoundKey | undefined,
  ): Promise<Caller | undefined> => {
    if (!found) return undefined;
    const { is_new_minute, ...rest } = found;
    if (is_new_minute) lastUses.record(rest);
    const [project_id] = rest.project_ids;
    if (project_id === undefined) throw new Error(`API key ${rest.key_id} has no project.`);
    const named = namedUser(request);
    const actor = named === undefined ? undefined : await requireUser(authenticationPool, named);
    if (actor?.is_disabled === true)
      throw new ApiError(403, 'permission_denied', 'The user whom the proxy names is disabled.');
    return { ...rest, project_id, actor_id: actor?.id ?? rest.user_id };
  };

  const findKey = async (key: string): Promise<FoundKey | undefined> => {
    if (!isKey(key)) return undefined;
    const hash = hashOfKey(key);
    const { rows } = await authenticationPool.query<FoundKey & { readonly key_hash: Buffer }>({
      name: 'authenticate-key',
      text: `select ${keyColumns}, null as session_id, key.key_hash,
          key.last_used_at is distinct from ${thisMinute} as is_new_minute
        from exportd.api_keys key where key.key_hash = $1 and ${isActiveKey}`,
      values: [hash],
    });
    const [row] = rows;
    if (!row) return undefined;
    const { key_hash, ...found } = row;
    return timingSafeEqual(key_hash, hash) ? found : undefined;
  };

  const callerOfKey: Authentication['callerOfKey'] = async (request, key) =>
    toCaller(request, await limiter.attempt(request.ip, () => findKey(key)));

  const findSession = async (hash: Buffer): Promise<FoundKey | undefined> => {
    const { rows } = await authenticationPool.query<FoundKey>({
      name: 'authenticate-session',
      text: `select ${keyColumns}, session.id as session_id,
          session.last_seen_at is distinct from ${thisMinute} as is_new_minute
        from exportd.console_sessions session join exportd.api_keys key on key.id = session.key_id
        where session.token_hash = $1 and session.expires_at > clock_timestamp()
          and session.last_seen_at > clock_timestamp() - $2 * interval '1 millisecond' and ${isActiveKey}`,
      values: [hash, idleMs],
    });
    return rows[0];
  };

  const callerOfSession: Authentication['callerOfSession'] = async (request) => {
    const hash = sessionHashOf(request, settings);
    return hash && toCaller(request, await limiter.attempt(request.ip, () => findSession(hash)));
  };

  const findCaller: Authentication['findCaller'] = async (request) => {
    const key = keyIn(request);
    return key === undefined ? callerOfSession(request) : callerOfKey(request, key);
  };

  const requireCaller = async (request: FastifyRequest): Promise<Caller> => {
    const { authorization } = request.headers;
    const key = keyIn(request);
    if (key !== undefined) {
      const caller = await callerOfKey(request, key);
      if (caller) return caller;
      throw unauthenticated('authentication_failed', 'The personal API key is unknown, expired or revoked.');
    }
    if (authorization || !sessionHashOf(request, settings)) {
      refusals.recordFailedAuthentication('missing', clientOf(request.ip));
      throw unauthenticated(
        'not_authenticated',
        'No API key was sent. Send the header "Authorization: Bearer <personal API key>".',
      );
    }
    requireSameOrigin(request);
    const caller = await callerOfSession(request);
    if (caller) return caller;
    throw unauthenticated('authentication_failed', 'The session has ended. Sign in again.');
  };

  const authenticate = async (request: FastifyRequest): Promise<void> => {
    const caller = await requireCaller(request);
    // The log says whose key was refused.
    request.caller = caller;
    const { project_id: given } = request.params as { project_id?: string };
    const project_id =
      given === undefined ? caller.project_id : caller.project_ids.find((id) => String(id) === given);
    if (project_id === undefined) {
      refusals.recordOtherProject(request);
      throw notFound();
    }
    request.caller = { ...caller, project_id };
    const { scope } = request.routeOptions.config;
    if (scope !== undefined) requireScope(caller, scope);
  };

  return { authenticate, callerOfKey, callerOfSession, findCaller, close: lastUses.close };
}

/** The key in the header `Authorization`. */
const keyIn = ({ headers }: FastifyRequest): string | undefined =>
  /^Bearer +(\S+) *$/i.exec(headers.authorization ?? '')?.[1];

/** RFC 5321 allows no longer address. */
export const maxAddressLength = 254;

/**
 * Reads the e-mail address of the user whom a trusted proxy names; undefined if it names none, and for requests that came
 * from elsewhere. What counts is the peer of the connection: anyone can send `X-Forwarded-For`. The function throws ApiError
 * 400 for a header that is no address, such as the two of a client and of a proxy that adds its own.
 */
function createNamedUser({
  EXPORTD_USER_HEADER: header,
  EXPORTD_TRUSTED_PROXIES: proxies = [],
}: Pick<Settings, 'EXPORTD_TRUSTED_PROXIES' | 'EXPORTD_USER_HEADER'>): (
  request: FastifyRequest,
) => string | undefined {
  if (header === undefined) return () => undefined;
  const trusted = new BlockList();
  for (const network of proxies) {
    const [address = '', prefix] = network.split('/');
    const family = isIP(address) === 4 ? 'ipv4' : 'ipv6';
    trusted.addSubnet(address, Number(prefix ?? (family === 'ipv4' ? 32 : 128)), family);
  }
  const isTrusted = (peer: string | undefined): boolean => {
    // A socket of both families writes IPv4 addresses so.
    const address = (peer ?? '').replace(/^::ffff:(?=\d+\.)/i, '');
    const version = isIP(address);
    return version !== 0 && trusted.check(address, version === 4 ? 'ipv4' : 'ipv6');
  };
  return ({ headers, socket }) => {
    const value = headers[header];
    if (value === undefined || value === '' || !isTrusted(socket.remoteAddress)) return undefined;
    if (typeof value === 'string' && value.length <= maxAddressLength && /^[^\s@,;]+@[^\s@,;]+$/.test(value))
      return value;
    throw invalid(
      `The header ${header} of the proxy must be one e-mail address of at most ${maxAddressLength} characters (EXPORTD_USER_HEADER).`,
      null,
    );
  };
}

/** Stores the minute in which keys and sessions were last used, beside their requests: none of them waits for it. */
function createLastUses(pool: Pool, logger: Logger) {
  type Used = Pick<Caller, 'key_id' | 'session_id'>;
  /** What is being written is not written twice. */
  const pending = new Map<string, Promise<void>>();
  const write = async (id: string, { key_id, session_id }: Used): Promise<void> => {
    try {
      await pool.query(
        `with seen as (
           update exportd.console_sessions set last_seen_at = ${thisMinute}
           where id = $2 and last_seen_at is distinct from ${thisMinute})
         update exportd.api_keys set last_used_at = ${thisMinute}
         where id = $1 and last_used_at is distinct from ${thisMinute}`,
        [key_id, session_id],
      );
    } catch (error) {
      logger.warn({ err: error, key_id }, 'Could not store when a key was used.');
    } finally {
      pending.delete(id);
    }
  };
  return {
    record: (used: Used) => {
      const id = used.session_id ?? used.key_id;
      if (!pending.has(id)) pending.set(id, write(id, used));
    },
    close: async () => {
      await Promise.all(pending.values());
    },
  };
}

/** Slows down who tries many keys. */
interface AuthenticationLimiter {
  /**
   * Looks up a key that a client at this address has sent. A key that is found always passes, also while the address is
   * limited: keys are 32 random bytes, so guessing needs no lock-out, and an address may stand for many users.
   * @param find returns undefined for a key that is not valid
   * @returns what `find` found; undefined for a key that is not valid
   * @throws ApiError 429 for a key that is not valid, when the address has sent too many of them
   */
  attempt<Found>(address: string, find: () => Promise<Found | undefined>): Promise<Found | undefined>;
}

interface Failures {
  count: number;
  readonly since: number;
}

interface LimiterOptions {
  /** Failures of an address within a window that are answered with 401. */
  readonly maxFailures: number;
  readonly windowMs: number;
  /** The time in milliseconds. */
  readonly now: () => number;
  readonly onFailure: (outcome: FailedAuthentication, address: string) => void;
}

/** Counts failed attempts of each address. A count per process is enough. */
export function createAuthenticationLimiter(options: LimiterOptions): AuthenticationLimiter {
  const { maxFailures, windowMs, now, onFailure } = options;
  const failures = new Map<string, Failures>();
  // The keys of a limited address are looked up one at a time, so that a flood costs one connection at most.
  const turns = createKeyedSemaphore<string>({ perKey: 1 });

  const current = (client: string): Failures | undefined => {
    const found = failures.get(client);
    if (found && now() - found.since < windowMs) return found;
    failures.delete(client);
    return undefined;
  };
  const recordFailure = (client: string): Failures => {
    const known = current(client);
    if (known) {
      known.count += 1;
      return known;
    }
    const [oldest] = failures.keys();
    if (failures.size >= bounds.failedAuthenticationAddresses.max && oldest !== undefined)
      failures.delete(oldest);
    const first = { count: 1, since: now() };
    failures.set(client, first);
    return first;
  };
  const isLimited = (client: string): boolean => (current(client)?.count ?? 0) >= maxFailures;

  return {
    attempt: async (address, find) => {
      const client = clientOf(address);
      const release = isLimited(client) ? await turns.acquire(client) : undefined;
      const found = await find().finally(release);
      if (found !== undefined) return found;
      const { count, since } = recordFailure(client);
      const outcome = count > maxFailures ? 'limited' : 'rejected';
      onFailure(outcome, client);
      if (outcome === 'rejected') return undefined;
      const seconds = Math.max(1, Math.ceil((since + windowMs - now()) / 1_000));
      throw new ApiError(
        429,
        'throttled',
        `Too many invalid API keys were sent from this address. Retry in ${seconds} seconds; a valid key is accepted at once.`,
        retryAfter(seconds),
      );
    },
  };
}

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
