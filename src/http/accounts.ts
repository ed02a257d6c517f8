import { createHash, randomBytes } from 'node:crypto';
import { isTimeZone } from '../domain/intervals.ts';
import { type FieldChange, fieldChanges, recordAuditEvent } from '../journal/audit.ts';
import { inTransaction, type Pool } from '../journal/database.ts';
import type { RestrictionLevel } from './dashboards/access_levels.ts';
import type { weekStartDays } from './projects/week_start_days.ts';
import { nameText } from './schemas.ts';
import { isScope, type Preset, presetOf, type Scope, scopes } from './scopes.ts';

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

/** A user as who administers the installation sees it. */
export interface InstallationUser extends User {
  /** Null: not disabled. */
  readonly disabled_at: string | null;
  /** How many active keys the user owns. */
  readonly active_keys: number;
  /** How many active keys of other users the user has created. */
  readonly active_keys_of_others: number;
}

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

/** The columns of a `User`. */
export const userColumns = `id, uuid, distinct_id, first_name, last_name, email, is_email_verified, mascot_config,
  role_at_organization`;
const projectColumns = 'id, name, timezone, week_start_day, external_id';

/** SQL condition: a row `key` authenticates. */
export const isActiveKey = `(key.revoked_at is null and (key.expires_at is null or key.expires_at > clock_timestamp()))`;

/** What an e-mail address of a user looks like. */
export const addressPattern = /^[^\s@]+@[^\s@]+$/;

/** Creates a user. @throws InvalidAccount when the e-mail address is malformed or already used, in any case of its letters. */
export async function createUser(
  pool: Pool,
  given: { readonly email: string } & Partial<Omit<User, 'id' | 'uuid' | 'email'>>,
): Promise<InstallationUser> {
  if (!addressPattern.test(given.email))
    throw new InvalidAccount(`"${given.email}" is not an e-mail address.`);
  const { rows } = await pool.query<InstallationUser>(
    `insert into exportd.users (email, first_name, last_name, distinct_id, is_email_verified, mascot_config,
       role_at_organization)
     select $1, $2, $3, coalesce($4, gen_random_uuid()::text), $5, $6, $7
     where not exists (select from exportd.users where lower(email) = lower($1))
     on conflict do nothing
     returning ${userColumns}, disabled_at, 0 as active_keys, 0 as active_keys_of_others`,
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

const selectUsers = `with active as (
    select key.user_id, key.created_by from exportd.api_keys key where ${isActiveKey}),
  owned as (select user_id, count(*)::int as keys from active group by user_id),
  given as (select created_by, count(*)::int as keys from active where created_by <> user_id group by created_by)
  select ${userColumns}, disabled_at, coalesce(owned.keys, 0) as active_keys,
    coalesce(given.keys, 0) as active_keys_of_others
  from exportd.users left join owned on owned.user_id = id left join given on given.created_by = id`;

/** All users, oldest first. */
export const listUsers = async (pool: Pool): Promise<InstallationUser[]> =>
  (await pool.query<InstallationUser>(`${selectUsers} order by id`)).rows;

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
export const findUser = async (pool: Pool, id: number): Promise<InstallationUser | undefined> =>
  (await pool.query<InstallationUser>(`${selectUsers} where id = $1`, [id])).rows[0];

/** A user as a proxy names it. */
interface NamedUser {
  readonly id: number;
  readonly is_disabled: boolean;
}

/**
 * The user with an e-mail address, in any case of its letters; creates the user if there is none.
 * @param email has the form of one
 */
export async function requireUser(pool: Pool, email: string): Promise<NamedUser> {
  const { rows } = await pool.query<NamedUser>({
    name: 'require-user',
    text: `with found as (
          select id, disabled_at is not null as is_disabled from exportd.users where lower(email) = $1 order by id limit 1),
        created as (
          insert into exportd.users (email, distinct_id) select $1, gen_random_uuid()::text
          where not exists (select from found) on conflict do nothing returning id, false as is_disabled)
      select * from found union all select * from created`,
    values: [email.toLowerCase()],
  });
  // Another request is creating the same user.
  return rows[0] ?? requireUser(pool, email);
}

/** A user, and what was changed. */
interface ChangedUser {
  readonly user: InstallationUser;
  readonly changes: readonly FieldChange[];
}

/** The user is the last one who can administer the installation. */
export class LastOwner extends InvalidAccount {
  constructor(user: string) {
    super(
      `${user} is the only user with an active key that has installation:admin. Create such a key for another user first.`,
    );
  }
}

/**
 * Disables a user, and revokes the keys that the user owns: enabling the user does not bring them back. Sessions end with
 * their keys. Keys that the user created for others stay. The audit trail of each project in which keys end says so.
 * @param by who does it, and from which project, in whose trail the caller records it
 * @returns undefined when there is no such user
 * @throws LastOwner
 */
export const disableUser = (
  pool: Pool,
  id: number,
  by: { readonly actor_id: number | null; readonly project_id: number | null },
): Promise<(ChangedUser & { readonly revokedKeys: number }) | undefined> =>
  inTransaction(pool, async (connection) => {
    // Of two owners who disable each other, the second waits here and then has no key.
    await connection.query('lock table exportd.users in share row exclusive mode');
    const { rows } = await connection.query<{
      readonly email: string;
      readonly disabled: boolean;
      readonly is_owner: boolean;
      readonly is_last: boolean;
    }>(
      `with administrator as (
         select distinct key.user_id from exportd.api_keys key
         where 'installation:admin' = any(key.scopes) and ${isActiveKey})
       select email, disabled_at is not null as disabled, exists (select from administrator where user_id = users.id) as is_owner,
         not exists (select from administrator where user_id <> users.id) as is_last
       from exportd.users where id = $1`,
      [id],
    );
    const [found] = rows;
    if (!found) return undefined;
    if (found.is_owner && found.is_last) throw new LastOwner(found.email);
    // Waits for keys of the user that are being created, which the next statement then sees.
    await connection.query(
      'update exportd.users set disabled_at = coalesce(disabled_at, clock_timestamp()) where id = $1',
      [id],
    );
    const { rows: revoked } = await connection.query<{ readonly project_ids: readonly number[] }>(
      // In the order of a revocation.
      `with locked as materialized (
         select id from exportd.api_keys key where key.user_id = $1 and ${isActiveKey} order by id for no key update)
       update exportd.api_keys key set revoked_at = clock_timestamp() where id in (select id from locked)
       returning project_ids`,
      [id],
    );
    const { rows: users } = await connection.query<InstallationUser>(`${selectUsers} where id = $1`, [id]);
    const revokedKeys = revoked.length;
    const before = { disabled: found.disabled, active_keys: revokedKeys };
    const others = new Set(revoked.flatMap(({ project_ids }) => project_ids));
    if (by.project_id !== null) others.delete(by.project_id);
    // Their readers know neither the caller's key nor how many other projects there are.
    for (const team_id of others)
      await recordAuditEvent(connection, {
        team_id,
        user_id: by.actor_id,
        key_id: null,
        address: null,
        client: null,
        action: 'user.disable',
        object: `users/${id}`,
        outcome: 'done',
        status: null,
        detail: null,
        changes: fieldChanges({ disabled: found.disabled }, { disabled: true }),
      });
    return (
      users[0] && {
        user: users[0],
        changes: fieldChanges(before, { disabled: true, active_keys: 0 }),
        revokedKeys,
      }
    );
  });

/** Lets keys be created for a user again. @returns undefined when there is no such user */
export async function enableUser(pool: Pool, id: number): Promise<ChangedUser | undefined> {
  const { rowCount } = await pool.query(
    'update exportd.users set disabled_at = null where id = $1 and disabled_at is not null',
    [id],
  );
  const user = await findUser(pool, id);
  return user && { user, changes: fieldChanges({ disabled: rowCount === 1 }, { disabled: false }) };
}

/** The name of a project. */
export const projectName = nameText(200);

/** @throws InvalidAccount */
function requireProjectName(name: string): void {
  const problem = projectName.safeParse(name).error?.issues[0]?.message;
  if (problem !== undefined) throw new InvalidAccount(`The name of the project: ${problem}`);
}

/**
 * Creates a project, and gives a key access to it at once.
 * @throws InvalidAccount when the name is blank, the time zone is unknown or the id is already used.
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
  requireProjectName(given.name);
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

/**
 * Gives a project another name.
 * @returns undefined when there is no such project
 * @throws InvalidAccount when the name is blank
 */
export async function renameProject(
  pool: Pool,
  id: number,
  name: string,
): Promise<{ readonly project: Project; readonly changes: readonly FieldChange[] } | undefined> {
  requireProjectName(name);
  const { rows } = await pool.query<Project & { readonly former_name: string }>(
    `with former as (select id as former_id, name as former_name from exportd.projects where id = $1 for update)
     update exportd.projects set name = $2 from former where id = former_id
     returning ${projectColumns}, former_name`,
    [id, name],
  );
  const [row] = rows;
  if (!row) return undefined;
  const { former_name, ...project } = row;
  return { project, changes: fieldChanges({ name: former_name }, { name: project.name }) };
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
