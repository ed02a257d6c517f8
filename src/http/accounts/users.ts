/** Users of the installation. */
import { type FieldChange, fieldChanges, recordAuditEvent } from '../../journal/audit.ts';
import { inTransaction, type Pool } from '../../journal/database.ts';
import { InvalidAccount } from './invalid_account.ts';
import { isActiveKey } from './active_key.ts';

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

/** The columns of a `User`. */
export const userColumns = `id, uuid, distinct_id, first_name, last_name, email, is_email_verified, mascot_config,
  role_at_organization`;

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
