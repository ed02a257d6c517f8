import { createHash, randomBytes } from 'node:crypto';
import { isTimeZone } from '../domain/intervals.ts';
import type { Pool } from '../journal/database.ts';
import type { RestrictionLevel } from './dashboards/access_levels.ts';

/** The scopes that a key can have. Write does not imply read. */
export const scopes = [
  'batch_export:read',
  'batch_export:write',
  'dashboard:read',
  'query:read',
  'key:admin',
  'audit:read',
  'source:read',
  'installation:admin',
] as const;
export type Scope = (typeof scopes)[number];

/** Lets secret scanners recognize a key of exportd. */
const keyPrefix = 'exk_';

/** How much of a key is stored in the clear: too little to guess the rest, enough to recognize it. */
const shownLength = keyPrefix.length + 4;

/** Generates a personal API key from 32 random bytes. */
const newApiKey = (): string => keyPrefix + randomBytes(32).toString('base64url');

/** Whether a text has the form of a key. Others need not be looked up. */
export const isKey = (text: string): boolean => /^exk_[\w-]{43}$/.test(text);

/** The hash that is stored of a key. A plain SHA-256 is enough because keys are random. */
export const hashOfKey = (key: string): Buffer => createHash('sha256').update(key).digest();

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

/** Who owns or created a key. */
interface KeyUser {
  readonly id: number;
  readonly email: string;
}

/** The state of a key. Only active ones authenticate. */
export const keyStatuses = ['active', 'expired', 'revoked'] as const;
type KeyStatus = (typeof keyStatuses)[number];

/** An API key as listed, without the key itself. */
export interface ApiKey {
  readonly id: string;
  readonly name: string;
  /** The first characters of the key. */
  readonly prefix: string;
  readonly user: KeyUser;
  /** Null: it was created on the command line. */
  readonly created_by: KeyUser | null;
  readonly projects: readonly number[];
  readonly scopes: readonly Scope[];
  readonly status: KeyStatus;
  readonly created_at: string;
  readonly expires_at: string | null;
  /** To the minute. */
  readonly last_used_at: string | null;
  readonly revoked_at: string | null;
  /** The id of the key that it was created with; null: on the command line. */
  readonly created_with: string | null;
  /** The id of the key that it replaces. */
  readonly rotated_from: string | null;
  /** How many active keys were created with it, or with one of these in turn. */
  readonly active_descendants: number;
}

/** The columns of a `User`. */
export const userColumns = `id, uuid, distinct_id, first_name, last_name, email, is_email_verified, mascot_config,
  role_at_organization`;
const projectColumns = 'id, name, timezone, week_start_day, external_id';

/** What an e-mail address of a user looks like. */
export const addressPattern = /^[^\s@]+@[^\s@]+$/;

/** Creates a user. @throws InvalidAccount when the e-mail address is malformed or already used, in any case of its letters. */
export async function createUser(
  pool: Pool,
  given: { readonly email: string } & Partial<Omit<User, 'id' | 'uuid' | 'email'>>,
): Promise<User> {
  if (!addressPattern.test(given.email))
    throw new InvalidAccount(`"${given.email}" is not an e-mail address.`);
  const { rows } = await pool.query<User>(
    `insert into exportd.users (email, first_name, last_name, distinct_id, is_email_verified, mascot_config,
       role_at_organization)
     select $1, $2, $3, coalesce($4, gen_random_uuid()::text), $5, $6, $7
     where not exists (select from exportd.users where lower(email) = lower($1))
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

/** The users who own an active key of a project, oldest first, with the number of these keys. */
export async function listProjectUsers(
  pool: Pool,
  projectId: number,
): Promise<(Pick<User, 'id' | 'email' | 'first_name' | 'last_name'> & { readonly active_keys: number })[]> {
  const { rows } = await pool.query<Awaited<ReturnType<typeof listProjectUsers>>[number]>(
    `select owner.id, owner.email, owner.first_name, owner.last_name, count(*)::int as active_keys
     from exportd.api_keys key join exportd.users owner on owner.id = key.user_id
     where $1 = any(key.project_ids) and ${isActiveKey}
     group by owner.id order by owner.id`,
    [projectId],
  );
  return rows;
}

/** The user with this id. */
export const findUser = async (pool: Pool, id: number): Promise<User | undefined> =>
  (await pool.query<User>(`select ${userColumns} from exportd.users where id = $1`, [id])).rows[0];

/**
 * The id of the user with an e-mail address, in any case of its letters; creates the user if there is none.
 * @param email has the form of one
 */
export async function requireUserId(pool: Pool, email: string): Promise<number> {
  const { rows } = await pool.query<{ id: number }>({
    name: 'require-user',
    text: `with found as (select id from exportd.users where lower(email) = $1 order by id limit 1),
        created as (
          insert into exportd.users (email, distinct_id) select $1, gen_random_uuid()::text
          where not exists (select from found) on conflict do nothing returning id)
      select id from found union all select id from created`,
    values: [email.toLowerCase()],
  });
  // Another request is creating the same user.
  return rows[0]?.id ?? requireUserId(pool, email);
}

/**
 * Creates a project, and gives a key access to it at once.
 * @throws InvalidAccount when the time zone is unknown or the id is already used.
 */
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
    /** The key that gets access to it. */
    readonly key_id?: string | undefined;
  },
): Promise<Project> {
  const timezone = given.timezone ?? 'UTC';
  if (!isTimeZone(timezone))
    throw new InvalidAccount(`Unknown time zone "${timezone}". Use an IANA name such as Europe/Berlin.`);
  // Explicit ids may be ahead of a sequence, so the next id is the one after the highest that has a free one after it.
  const { rows } = await pool.query<Project>(
    `with created as (
       insert into exportd.projects (id, name, timezone, week_start_day, test_account_filters,
         dashboard_restriction_level)
       values (coalesce($1, (
         select max(id) + 1 from exportd.projects project
         where id < 2147483647 and not exists (select from exportd.projects where id = project.id + 1)), 1),
         $2, $3, $4, $5, $6)
       on conflict do nothing returning ${projectColumns}),
     granted as (
       update exportd.api_keys set project_ids = project_ids || created.id from created where api_keys.id = $7)
     select * from created`,
    [
      given.id ?? null,
      given.name,
      timezone,
      given.week_start_day ?? 'sunday',
      JSON.stringify(given.test_account_filters ?? []),
      given.dashboard_restriction_level ?? 21,
      given.key_id ?? null,
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

/** SQL condition: a row `key` authenticates. */
export const isActiveKey = `(key.revoked_at is null and (key.expires_at is null or key.expires_at > clock_timestamp()))`;

interface NewKey {
  readonly user_id: number;
  readonly project_ids: readonly number[];
  readonly scopes: readonly string[];
  readonly name?: string | undefined;
  /** ISO 8601; by default it does not expire, or lives as long as `maxLifetimeMs` allows. */
  readonly expires_at?: string | null | undefined;
  readonly created_by?: number | undefined;
  /** The id of the key that it is created with, which it does not outlive. */
  readonly created_with?: string | undefined;
}

/** A key and its id. The key cannot be read again: only its hash is stored. */
interface CreatedKey {
  readonly id: string;
  readonly key: string;
}

/**
 * Creates a personal API key of a user.
 * @param maxLifetimeMs EXPORTD_KEY_MAX_LIFETIME
 * @throws InvalidAccount when a scope, the user or a project does not exist, or when it would live for too long.
 */
export async function createKey(pool: Pool, given: NewKey, maxLifetimeMs?: number): Promise<CreatedKey> {
  const unknown = given.scopes.find((scope) => !isScope(scope));
  if (unknown !== undefined)
    throw new InvalidAccount(`Unknown scope "${unknown}". Valid scopes: ${scopes.join(', ')}.`);
  if (given.scopes.length === 0) throw new InvalidAccount('An API key needs at least one scope.');
  const problem = expiryProblem(given.expires_at ?? null, maxLifetimeMs);
  if (problem !== undefined) throw new InvalidAccount(problem);
  const key = newApiKey();
  const projectIds = [...new Set(given.project_ids)].sort((one, other) => one - other);
  const { rows } = await pool.query<{ id: string }>(
    `insert into exportd.api_keys (user_id, project_ids, key_hash, prefix, scopes, name, created_by, created_with, expires_at)
     select users.id, $2, $3, $4, $5, $6, $7, $10::uuid,
       least(coalesce($8, clock_timestamp() + $9 * interval '1 millisecond'),
         (select expires_at from exportd.api_keys where id = $10))
     from exportd.users
     where users.id = $1 and (select count(*) from exportd.projects where id = any($2)) = cardinality($2)
     returning id`,
    [
      given.user_id,
      projectIds,
      hashOfKey(key),
      key.slice(0, shownLength),
      [...new Set(given.scopes)],
      given.name ?? '',
      given.created_by ?? null,
      given.expires_at ?? null,
      maxLifetimeMs ?? null,
      given.created_with ?? null,
    ],
  );
  const [stored] = rows;
  if (!stored)
    throw new InvalidAccount(`User ${given.user_id} or project ${projectIds.join(' or ')} does not exist.`);
  return { id: stored.id, key };
}

/** Why a key cannot have this expiry, as a sentence; undefined if it can. */
export function expiryProblem(
  expiresAt: string | null,
  maxLifetimeMs: number | undefined,
): string | undefined {
  if (expiresAt === null) return undefined;
  const lifetime = Date.parse(expiresAt) - Date.now();
  if (lifetime <= 0) return 'Must be in the future.';
  if (maxLifetimeMs !== undefined && lifetime > maxLifetimeMs)
    return `A key lives for at most ${Math.floor(maxLifetimeMs / 3_600_000)} hours (EXPORTD_KEY_MAX_LIFETIME).`;
  return undefined;
}

/** Which keys are read, and which of their projects are shown. By default all. */
interface KeyFilter {
  readonly project_id?: number | undefined;
  readonly id?: string;
  readonly statuses?: readonly KeyStatus[] | undefined;
  readonly visible?: readonly number[] | null;
}

/** SQL: the status of a row `key`. */
const keyStatus = `case when key.revoked_at is not null then 'revoked' when ${isActiveKey} then 'active' else 'expired' end`;

/** SQL: a recursive query `descendant` of the keys that were created with this one, or with one of them in turn. */
const descendantsOf = (id: string): string => `recursive descendant as (
  select child.id from exportd.api_keys child where child.created_with = ${id}
  union select child.id from exportd.api_keys child join descendant on child.created_with = descendant.id)`;

/** SQL: how many active keys were created with a row `key`. Only those in the projects that are shown. */
const activeDescendants = `(with ${descendantsOf('key.id')}
  select count(*)::int from exportd.api_keys made where id in (select id from descendant)
    and ${isActiveKey.replaceAll('key.', 'made.')} and ($4::integer[] is null or made.project_ids && $4))`;

/** SQL: the keys of a `KeyFilter`. */
const fromKeys = `from exportd.api_keys key
  join exportd.users owner on owner.id = key.user_id
  left join exportd.users creator on creator.id = key.created_by
  where ($1::integer is null or $1 = any(key.project_ids)) and ($2::text is null or key.id::text = $2)
    and ($3::text[] is null or ${keyStatus} = any($3))`;

const valuesOf = ({ project_id, id, statuses }: KeyFilter): unknown[] => [
  project_id ?? null,
  id ?? null,
  statuses ?? null,
];

async function selectKeys(pool: Pool, filter: KeyFilter, rest = '', more: unknown[] = []): Promise<ApiKey[]> {
  const { rows } = await pool.query<ApiKey>(
    `select key.id, key.name, key.prefix, json_build_object('id', owner.id, 'email', owner.email) as user,
       case when creator.id is not null then json_build_object('id', creator.id, 'email', creator.email) end as created_by,
       array(select id from unnest(key.project_ids) id where $4::integer[] is null or id = any($4) order by id) as projects,
       key.scopes, key.created_at, key.expires_at, key.last_used_at, key.revoked_at, key.created_with,
       key.rotated_from, ${activeDescendants} as active_descendants, ${keyStatus} as status
     ${fromKeys} order by key.created_at desc, key.id ${rest}`,
    [...valuesOf(filter), filter.visible ?? null, ...more],
  );
  return rows;
}

/** All API keys, or those of a project, newest first, revoked ones included. */
export const listKeys = (pool: Pool, projectId?: number): Promise<ApiKey[]> =>
  selectKeys(pool, { project_id: projectId });

/** A page of the keys of a project, newest first. */
export async function listProjectKeys(
  pool: Pool,
  filter: KeyFilter,
  window: { readonly limit: number; readonly offset: number },
): Promise<{ count: number; results: ApiKey[] }> {
  const counted = await pool.query<{ count: number }>(
    `select count(*) as count ${fromKeys}`,
    valuesOf(filter),
  );
  const results = await selectKeys(pool, filter, 'limit $5 offset $6', [window.limit, window.offset]);
  return { count: counted.rows[0]?.count ?? 0, results };
}

/** A key of a project. */
export const findKey = async (
  pool: Pool,
  filter: Required<Omit<KeyFilter, 'statuses'>>,
): Promise<ApiKey | undefined> => (await selectKeys(pool, filter))[0];

/**
 * Creates the successor of an active key, with its name, scopes, projects and lifetime. The old one works for `overlapMs`
 * more, unless it expires sooner.
 * @returns undefined when the key is not active.
 */
export async function rotateKey(
  pool: Pool,
  id: string,
  options: {
    readonly overlapMs: number;
    readonly maxLifetimeMs: number | undefined;
    readonly createdBy: number | null;
    readonly createdWith: string | null;
  },
): Promise<CreatedKey | undefined> {
  const key = newApiKey();
  const { rows } = await pool.query<{ id: string }>(
    `with old as (select * from exportd.api_keys key where id::text = $1 and ${isActiveKey} for update),
       shortened as (
         update exportd.api_keys set
           expires_at = least(api_keys.expires_at, clock_timestamp() + $2 * interval '1 millisecond')
         from old where api_keys.id = old.id)
     insert into exportd.api_keys
       (user_id, project_ids, name, scopes, rotated_from, key_hash, prefix, created_by, created_with, expires_at)
     select user_id, project_ids, name, scopes, id, $4, $5, $6, $7,
       least(clock_timestamp() + (expires_at - created_at), clock_timestamp() + $3 * interval '1 millisecond')
     from old returning id`,
    [
      id,
      options.overlapMs,
      options.maxLifetimeMs ?? null,
      hashOfKey(key),
      key.slice(0, shownLength),
      options.createdBy,
      options.createdWith,
    ],
  );
  return rows[0] && { id: rows[0].id, key };
}

/** What is revoked beside the key itself: nothing, or all keys that were created with it. */
export type Revocation = 'key' | 'descendants';

/**
 * Revokes an API key, for all of its projects or for some: it stays active for others.
 * @returns how many keys it ended; 0 when no key has this id, or when it was revoked before.
 */
export async function revokeKey(
  pool: Pool,
  id: string,
  projects?: readonly number[],
  revocation: Revocation = 'key',
): Promise<number> {
  const { rowCount } = await pool.query(
    `with ${descendantsOf('(select id from exportd.api_keys where id::text = $1)')}
     update exportd.api_keys set
       revoked_at = case when $2::integer[] is null or project_ids <@ $2 then clock_timestamp() end,
       project_ids = case when $2 is null or project_ids <@ $2 then project_ids
         else array(select id from unnest(project_ids) id where id <> all($2)) end
     where (id::text = $1 or ($3 and id in (select id from descendant)))
       and revoked_at is null and ($2::integer[] is null or project_ids && $2)`,
    [id, projects ?? null, revocation === 'descendants'],
  );
  return rowCount ?? 0;
}
