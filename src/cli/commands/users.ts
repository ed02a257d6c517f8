import type { Command } from 'commander';
import type { InstallationUser, User } from '../../http/accounts/users.ts';
import { fieldChanges } from '../../journal/audit.ts';
import {
  keyCommand,
  type KeyOptions,
  onlyDatabase,
  onService,
  optional,
  things,
  usesService,
  withChanges,
} from '../account_command.ts';
import { parseId, parseJsonObject } from '../arguments.ts';
import { CliError } from '../cli_error.ts';
import { printer, printList, table } from '../output.ts';
import { allOfThem, openService } from '../service_client.ts';
import { withAudit, withPool } from '../control_database.ts';

/** Loaded when a command needs the database: it loads pg and zod. */
const loadUsers = () => import('../../http/accounts/users.ts');

interface UserOptions extends KeyOptions {
  readonly email: string;
  readonly firstName?: string;
  readonly lastName?: string;
  readonly distinctId?: string;
  readonly emailVerified?: boolean;
  readonly mascotConfig?: Record<string, unknown>;
  readonly roleAtOrganization?: string;
}

/** `user create|list|disable|enable`. */
export function addUserCommands(program: Command): void {
  const user = program
    .command('user')
    .description(
      'manage users, who own API keys: with the HTTP API and a key that has installation:admin, or with the database if there is no key',
    );

  keyCommand(user, 'create', 'create a user', null)
    .requiredOption('--email <address>')
    .option('--first-name <name>')
    .option('--last-name <name>')
    .option('--distinct-id <id>', `random by default; ${onlyDatabase}`)
    .option('--email-verified', `mark the address as verified; ${onlyDatabase}`)
    .option('--mascot-config <JSON>', `a JSON object; ${onlyDatabase}`, parseJsonObject)
    .option('--role-at-organization <role>', 'job title; it grants nothing')
    .action(async (options: UserOptions) => {
      const { email, firstName, lastName, distinctId, emailVerified, mascotConfig, roleAtOrganization } =
        options;
      const body = {
        email,
        ...optional('first_name', firstName),
        ...optional('last_name', lastName),
        ...optional('role_at_organization', roleAtOrganization),
      };
      const created = usesService(options)
        ? await onService(options, {
            '--distinct-id': distinctId,
            '--email-verified': emailVerified,
            '--mascot-config': mascotConfig,
          }).post('/api/users', { body })
        : await withAudit(
            {
              action: 'user.create',
              object: ({ id }: User) => `users/${id}`,
              changes: () => fieldChanges({}, body),
            },
            async (pool) =>
              (await loadUsers()).createUser(pool, {
                ...body,
                ...optional('distinct_id', distinctId),
                ...optional('is_email_verified', emailVerified),
                ...optional('mascot_config', mascotConfig),
              }),
          );
      printer(options)(created, () => userTable([created]));
    });

  keyCommand(user, 'list', 'list all users; with an API key those who own a key of the project')
    .option('--all', 'with an API key that has installation:admin: all users')
    .action(async (options: KeyOptions & { readonly all?: boolean }) => {
      const users = usesService(options)
        ? (await openService(options).get(options.all === true ? '/api/users' : '/users', allOfThem)).results
        : await withPool(async (pool) => (await loadUsers()).listUsers(pool));
      printList(options)<PrintedUser>(users, userTable);
    });

  keyCommand(
    user,
    'disable',
    'disable a user: the keys and sessions of the user end at once and permanently',
    null,
  )
    .argument('<id>', 'id of the user, from "user list --all"', parseId)
    .action(async (id: number, options: KeyOptions) => {
      const disabled = usesService(options)
        ? await openService(options, things).post('/api/users/{id}/disable', { path: { id: String(id) } })
        : await withChanges({ action: 'user.disable', object: `users/${id}` }, async (pool) => {
            const { disableUser } = await loadUsers();
            return (await disableUser(pool, id, { actor_id: null, project_id: null })) ?? unknownUser(id);
          }).then(({ user: found, revokedKeys }) => ({ ...found, revoked_keys: revokedKeys }));
      const { email, revoked_keys, active_keys_of_others: others } = disabled;
      printer(options)(disabled, () => [
        `Disabled ${email}. Keys that ended: ${revoked_keys}.`,
        ...(others === 0
          ? []
          : [`Active keys that ${email} created for other users: ${others}. "key list" shows them.`]),
      ]);
    });

  keyCommand(user, 'enable', 'let keys be created for a user again; those that ended stay revoked', null)
    .argument('<id>', 'id of the user, from "user list --all"', parseId)
    .action(async (id: number, options: KeyOptions) => {
      const enabled = usesService(options)
        ? await openService(options, things).post('/api/users/{id}/enable', { path: { id: String(id) } })
        : await withChanges({ action: 'user.enable', object: `users/${id}` }, async (pool) => {
            const { enableUser } = await loadUsers();
            return (await enableUser(pool, id)) ?? unknownUser(id);
          }).then(({ user: found }) => found);
      printer(options)(enabled, () => [
        `Enabled ${enabled.email}. Keys that ended stay revoked: create another with "key create --user ${id}".`,
      ]);
    });
}

const unknownUser = (id: number): never => {
  throw new CliError(`There is no user ${id}. "exportd user list" lists what there is.`);
};

type PrintedUser = Pick<User, 'id' | 'email' | 'first_name' | 'last_name'> &
  Partial<Pick<InstallationUser, 'active_keys' | 'disabled_at'>>;

const userTable = (users: readonly PrintedUser[]): string[] =>
  table(
    ['id', 'email', 'first name', 'last name', 'active keys', 'disabled'],
    users.map((user) => [
      user.id,
      user.email,
      user.first_name,
      user.last_name,
      user.active_keys,
      user.disabled_at,
    ]),
  );
