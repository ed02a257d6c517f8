import { timingSafeEqual } from 'node:crypto';
import { BlockList, isIP } from 'node:net';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Settings } from '../../config/settings.ts';
import type { FieldChange } from '../../journal/audit.ts';
import type { Pool } from '../../journal/database.ts';
import type { Logger } from '../../telemetry/logger.ts';
import { ApiError, invalid, notFound } from '../api_error.ts';
import type { Scope } from '../scopes.ts';
import { clientOf, type Refusals } from './refusals.ts';
import { hashOfKey, isKey } from '../accounts/api_keys.ts';
import { requireUser } from '../accounts/users.ts';
import {
  type AuthenticationLimiter,
  createAuthenticationLimiter,
  failureWindowMs,
} from './authentication_limiter.ts';
import { requireSameOrigin } from './same_origin.ts';
import { sessionHashOf } from './sessions.ts';
import { isActiveKey } from '../accounts/active_key.ts';

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
