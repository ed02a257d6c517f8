import { isTimeZone } from '../domain/intervals.ts';
import type { Pool } from '../journal/database.ts';
import { hashOfKey, isScope, newApiKey, scopes, type Scope } from './api_keys.ts';
import { defaultAccess, type RestrictionLevel } from './dashboards/access_levels.ts';

/** A user, a project or a key that cannot be made as asked; the message says why. */
export class InvalidAccount extends Error {
  override readonly name = 'InvalidAccount';
}

/** A user as the interface shows one. */
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

/** The days that a project's weeks may begin with. */
export const weekStartDays = ['sunday', 'monday'] as const;

/** A project: the owner of all that its id, the `team_id`, stands in. */
export interface Project {
  readonly id: number;
  readonly name: string;
  readonly timezone: string;
  readonly week_start_day: (typeof weekStartDays)[number];
}

/** A key as it is listed: never the key itself. */
export interface ApiKey {
  readonly id: string;
  readonly user_id: number;
  readonly project_id: number;
  readonly scopes: readonly Scope[];
  readonly created_at: string;
  readonly revoked_at: string | null;
}

/** The columns of a user as it is answered. */
export const userColumns = `id, uuid, distinct_id, first_name, last_name, email, is_email_verified, mascot_config,
  role_at_organization`;
const projectColumns = 'id, name, timezone, week_start_day';
const keyColumns = 'id, user_id, project_id, scopes, created_at, revoked_at';

/** Makes a user. @throws InvalidAccount when the e-mail address is not one, or is taken. */
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
    throw new InvalidAccount(`There is a user with the e-mail address or distinct id of ${given.email}.`);
  return user;
}

/** Every user, in the order they were made. */
export const listUsers = async (pool: Pool): Promise<User[]> =>
  (await pool.query<User>(`select ${userColumns} from exportd.users order by id`)).rows;

/** Makes a project. @throws InvalidAccount when the time zone is unknown or the id is taken. */
export async function createProject(
  pool: Pool,
  given: {
    readonly id?: number | undefined;
    readonly name: string;
    readonly timezone?: string | undefined;
    readonly week_start_day?: Project['week_start_day'] | undefined;
    readonly test_account_filters?: readonly unknown[] | undefined;
    /** The least strict level that its dashboards may have. */
    readonly dashboard_restriction_level?: RestrictionLevel | undefined;
  },
): Promise<Project> {
  const timezone = given.timezone ?? 'UTC';
  if (!isTimeZone(timezone)) throw new InvalidAccount(`There is no time zone "${timezone}".`);
  // An id that was given by hand may lie ahead of the sequence, which would stumble over it: free ids are looked for.
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
  if (given.id !== undefined) throw new InvalidAccount(`There is a project ${given.id} already.`);
  return createProject(pool, given);
}

/** Every project, in the order of their ids. */
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
 * Makes a personal key of a user for one project. `key` is shown here and never again: only its hash is stored.
 * @throws InvalidAccount when a scope, the user or the project does not exist.
 */
export async function createKey(
  pool: Pool,
  given: { readonly user_id: number; readonly project_id: number; readonly scopes: readonly string[] },
): Promise<{ id: string; key: string }> {
  const unknown = given.scopes.find((scope) => !isScope(scope));
  if (unknown !== undefined)
    throw new InvalidAccount(`There is no scope "${unknown}". Scopes are: ${scopes.join(', ')}.`);
  if (given.scopes.length === 0) throw new InvalidAccount('A key needs at least one scope.');
  const key = newApiKey();
  const { rows } = await pool.query<{ id: string }>(
    `insert into exportd.api_keys (user_id, project_id, key_hash, scopes)
     select users.id, projects.id, $3, $4 from exportd.users, exportd.projects
     where users.id = $1 and projects.id = $2 returning id`,
    [given.user_id, given.project_id, hashOfKey(key), [...new Set(given.scopes)]],
  );
  const [stored] = rows;
  if (!stored)
    throw new InvalidAccount(`There is no user ${given.user_id} or no project ${given.project_id}.`);
  return { id: stored.id, key };
}

/** Every key, revoked ones included, without the keys themselves. */
export const listKeys = async (pool: Pool): Promise<ApiKey[]> =>
  (await pool.query<ApiKey>(`select ${keyColumns} from exportd.api_keys order by created_at, id`)).rows;

/** Revokes a key for ever; false when there is none with this id that is in force. */
export async function revokeKey(pool: Pool, id: string): Promise<boolean> {
  const { rowCount } = await pool.query(
    'update exportd.api_keys set revoked_at = clock_timestamp() where id::text = $1 and revoked_at is null',
    [id],
  );
  return rowCount === 1;
}
