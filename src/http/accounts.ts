import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { isTimeZone } from '../domain/intervals.ts';
import type { Pool } from '../journal/database.ts';
import { ApiError, notFound } from './api_error.ts';
import { requireSameOrigin, sessionKeyOf } from './console/session_cookie.ts';
import { defaultAccess, type RestrictionLevel } from './dashboards/access_levels.ts';

/** The scopes that a key can have. Write does not imply read. */
export const scopes = [
  'batch_export:read',
  'batch_export:write',
  'dashboard:read',
  'dashboard:write',
  'query:read',
] as const;
export type Scope = (typeof scopes)[number];

/** Lets secret scanners recognize a key of exportd. */
const keyPrefix = 'exk_';

/** Generates a personal API key from 32 random bytes. */
const newApiKey = (): string => keyPrefix + randomBytes(32).toString('base64url');

/** The hash that is stored of a key. A plain SHA-256 is enough because keys are random. */
const hashOfKey = (key: string): Buffer => createHash('sha256').update(key).digest();

const isScope = (text: string): text is Scope => (scopes as readonly string[]).includes(text);

/** Invalid input for a user, project or API key; the message names the value at fault. */
export class InvalidAccount extends Error {
  override readonly name = 'InvalidAccount';
}

/** A user as returned by the API. */
export interface User {
  readonly id: number;
  readonly uuid: string;
  readonly distinct_id: string;
  readonly first_name: string;
  readonly last_name: string;
  readonly email: string;
  readonly is_email_verified: boolean;
  readonly mascot_config: Readonly<Record<string, unknown>>;
  readonly role_at_organization: string;
}

/** The days on which a project's weeks can start. */
export const weekStartDays = ['sunday', 'monday'] as const;

/** A project. Its id is the `team_id` of everything that it owns. */
export interface Project {
  readonly id: number;
  readonly name: string;
  readonly timezone: string;
  readonly week_start_day: (typeof weekStartDays)[number];
  /** Identifies the project to AWS when exportd assumes a role for it. */
  readonly external_id: string;
}

/** An API key as listed, without the key itself. */
interface ApiKey {
  readonly id: string;
  readonly user_id: number;
  readonly project_id: number;
  readonly scopes: readonly Scope[];
  readonly created_at: string;
  readonly revoked_at: string | null;
}

/** The columns of a `User`. */
export const userColumns = `id, uuid, distinct_id, first_name, last_name, email, is_email_verified, mascot_config,
  role_at_organization`;
const projectColumns = 'id, name, timezone, week_start_day, external_id';
const keyColumns = 'id, user_id, project_id, scopes, created_at, revoked_at';

/** Creates a user. @throws InvalidAccount when the e-mail address is malformed or already used. */
export async function createUser(
  pool: Pool,
  given: { readonly email: string } & Partial<Omit<User, 'id' | 'uuid' | 'email'>>,
): Promise<User> {
  if (!/^[^\s@]+@[^\s@]+$/.test(given.email))
    throw new InvalidAccount(`"${given.email}" is not an e-mail address.`);
  const { rows } = await pool.query<User>(
    `insert into exportd.users (email, first_name, last_name, distinct_id, is_email_verified, mascot_config,
       role_at_organization)
     values ($1, $2, $3, coalesce($4, gen_random_uuid()::text), $5, $6, $7)
     on conflict do nothing returning ${userColumns}`,
    [
      given.email,
      given.first_name ?? '',
      given.last_name ?? '',
      given.distinct_id ?? null,
      given.is_email_verified ?? false,
      JSON.stringify(given.mascot_config ?? {}),
      given.role_at_organization ?? '',
    ],
  );
  const [user] = rows;
  if (!user)
    throw new InvalidAccount(
      `A user with the e-mail address or distinct id of ${given.email} already exists.`,
    );
  return user;
}

/** All users, oldest first. */
export const listUsers = async (pool: Pool): Promise<User[]> =>
  (await pool.query<User>(`select ${userColumns} from exportd.users order by id`)).rows;

/** The user with this id. */
export const findUser = async (pool: Pool, id: number): Promise<User | undefined> =>
  (await pool.query<User>(`select ${userColumns} from exportd.users where id = $1`, [id])).rows[0];

/** Creates a project. @throws InvalidAccount when the time zone is unknown or the id is already used. */
export async function createProject(
  pool: Pool,
  given: {
    readonly id?: number | undefined;
    readonly name: string;
    readonly timezone?: string | undefined;
    readonly week_start_day?: Project['week_start_day'] | undefined;
    readonly test_account_filters?: readonly unknown[] | undefined;
    /** The lowest restriction level of its dashboards. */
    readonly dashboard_restriction_level?: RestrictionLevel | undefined;
  },
): Promise<Project> {
  const timezone = given.timezone ?? 'UTC';
  if (!isTimeZone(timezone))
    throw new InvalidAccount(`Unknown time zone "${timezone}". Use an IANA name such as Europe/Berlin.`);
  // Explicit ids may be ahead of a sequence, so the next id is the highest one plus 1.
  const { rows } = await pool.query<Project>(
    `insert into exportd.projects (id, name, timezone, week_start_day, test_account_filters,
       dashboard_restriction_level)
     values (coalesce($1, (select coalesce(max(id), 0) + 1 from exportd.projects)), $2, $3, $4, $5, $6)
     on conflict do nothing returning ${projectColumns}`,
    [
      given.id ?? null,
      given.name,
      timezone,
      given.week_start_day ?? 'sunday',
      JSON.stringify(given.test_account_filters ?? []),
      given.dashboard_restriction_level ?? defaultAccess.restriction_level,
    ],
  );
  const [project] = rows;
  if (project) return project;
  if (given.id !== undefined) throw new InvalidAccount(`Project ${given.id} already exists.`);
  return createProject(pool, given);
}

/** All projects, by id. */
export const listProjects = async (pool: Pool): Promise<Project[]> =>
  (await pool.query<Project>(`select ${projectColumns} from exportd.projects order by id`)).rows;

/** The projects with these ids. */
export const findProjects = async (pool: Pool, ids: readonly number[]): Promise<Project[]> =>
  (
    await pool.query<Project>(
      `select ${projectColumns} from exportd.projects where id = any($1) order by id`,
      [ids],
    )
  ).rows;

/**
 * Creates a personal API key of a user for one project. `key` cannot be read again: only its hash is stored.
 * @throws InvalidAccount when a scope, the user or the project does not exist.
 */
export async function createKey(
  pool: Pool,
  given: { readonly user_id: number; readonly project_id: number; readonly scopes: readonly string[] },
): Promise<{ id: string; key: string }> {
  const unknown = given.scopes.find((scope) => !isScope(scope));
  if (unknown !== undefined)
    throw new InvalidAccount(`Unknown scope "${unknown}". Valid scopes: ${scopes.join(', ')}.`);
  if (given.scopes.length === 0) throw new InvalidAccount('An API key needs at least one scope.');
  const key = newApiKey();
  const { rows } = await pool.query<{ id: string }>(
    `insert into exportd.api_keys (user_id, project_id, key_hash, scopes)
     select users.id, projects.id, $3, $4 from exportd.users, exportd.projects
     where users.id = $1 and projects.id = $2 returning id`,
    [given.user_id, given.project_id, hashOfKey(key), [...new Set(given.scopes)]],
  );
  const [stored] = rows;
  if (!stored)
    throw new InvalidAccount(`User ${given.user_id} or project ${given.project_id} does not exist.`);
  return { id: stored.id, key };
}

/** All API keys, oldest first, revoked ones included. */
export const listKeys = async (pool: Pool): Promise<ApiKey[]> =>
  (await pool.query<ApiKey>(`select ${keyColumns} from exportd.api_keys order by created_at, id`)).rows;

/** Revokes an API key. @returns false when no active key has this id. */
export async function revokeKey(pool: Pool, id: string): Promise<boolean> {
  const { rowCount } = await pool.query(
    'update exportd.api_keys set revoked_at = clock_timestamp() where id::text = $1 and revoked_at is null',
    [id],
  );
  return rowCount === 1;
}

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
