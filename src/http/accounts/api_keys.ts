/** API keys: what is stored of them, and how they are created, rotated and revoked. */
import { createHash, randomBytes } from 'node:crypto';
import { type FieldChange, fieldChanges } from '../../journal/audit.ts';
import type { Pool } from '../../journal/database.ts';
import { isScope, type Preset, presetOf, type Scope, scopes } from '../scopes.ts';
import { InvalidAccount } from './invalid_account.ts';
import { findUser } from './users.ts';
import { isActiveKey } from './active_key.ts';

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
  /** The preset that has these scopes today; null if none has. */
  readonly preset: Preset | null;
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
 * @throws InvalidAccount when a scope, the user or a project does not exist, when the user is disabled, or when it would live
 * for too long.
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
     where users.id = $1 and users.disabled_at is null
       and (select count(*) from exportd.projects where id = any($2)) = cardinality($2)
     for share of users returning id`,
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
  if (!stored && (await findUser(pool, given.user_id))?.disabled_at)
    throw new InvalidAccount(`User ${given.user_id} is disabled. Enable the user first.`);
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
  const { rows } = await pool.query<Omit<ApiKey, 'preset'>>(
    `select key.id, key.name, key.prefix, json_build_object('id', owner.id, 'email', owner.email) as user,
       case when creator.id is not null then json_build_object('id', creator.id, 'email', creator.email) end as created_by,
       array(select id from unnest(key.project_ids) id where $4::integer[] is null or id = any($4) order by id) as projects,
       key.scopes, key.created_at, key.expires_at, key.last_used_at, key.revoked_at, key.created_with,
       key.rotated_from, ${activeDescendants} as active_descendants, ${keyStatus} as status
     ${fromKeys} order by key.created_at desc, key.id ${rest}`,
    [...valuesOf(filter), filter.visible ?? null, ...more],
  );
  return rows.map((row) => ({ ...row, preset: presetOf(row.scopes) }));
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

/** What the audit trail says of a new key. */
export const keyFields = ({ name, user, scopes, expires_at, rotated_from }: ApiKey): readonly FieldChange[] =>
  fieldChanges({}, { name, user: user.email, scopes, expires_at, rotated_from }).filter(
    ({ after }) => after !== '',
  );

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
    // Locks first the user and then the key, as disabling the user does.
    `with owner as materialized (
         select id from exportd.users
         where id = (select user_id from exportd.api_keys where id::text = $1) and disabled_at is null for share),
       old as (
         select key.* from owner join exportd.api_keys key on key.user_id = owner.id
         where key.id::text = $1 and ${isActiveKey} for update of key),
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
type Revocation = 'key' | 'descendants';

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
    `with ${descendantsOf('(select id from exportd.api_keys where id::text = $1)')}, locked as materialized (
       -- In one order, so that none of two that revoke each other's keys is ended as a deadlock.
       select id from exportd.api_keys where id::text = $1 or ($3 and id in (select id from descendant))
       order by id for no key update)
     update exportd.api_keys set
       revoked_at = case when $2::integer[] is null or project_ids <@ $2 then clock_timestamp() end,
       project_ids = case when $2 is null or project_ids <@ $2 then project_ids
         else array(select id from unnest(project_ids) id where id <> all($2)) end
     where id in (select id from locked) and revoked_at is null and ($2::integer[] is null or project_ids && $2)`,
    [id, projects ?? null, revocation === 'descendants'],
  );
  return rowCount ?? 0;
}
