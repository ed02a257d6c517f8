import { Option, type Command } from 'commander';
import {
  createKey,
  createProject,
  createUser,
  listKeys,
  listProjects,
  listUsers,
  type Project,
  revokeKey,
  scopes,
  type User,
  weekStartDays,
} from '../../http/accounts.ts';
import type { RestrictionLevel } from '../../http/dashboards/access_levels.ts';
import { CliError } from '../cli_error.ts';
import { parseId, parseJsonArray, parseJsonObject, parseRestrictionLevel } from '../arguments.ts';
import { resolveUser, withPool } from '../running_stack.ts';
import { printer, table } from '../output.ts';

interface JsonOption {
  readonly json?: boolean;
}

interface UserOptions extends JsonOption {
  readonly email: string;
  readonly firstName?: string;
  readonly lastName?: string;
  readonly distinctId?: string;
  readonly emailVerified?: boolean;
  readonly mascotConfig?: Record<string, unknown>;
  readonly roleAtOrganization?: string;
}

/** `user create|list`. */
export function addUserCommands(program: Command): void {
  const user = program.command('user').description('manage users, who own API keys');

  user
    .command('create')
    .description('create a user')
    .requiredOption('--email <address>')
    .option('--first-name <name>')
    .option('--last-name <name>')
    .option('--distinct-id <id>', 'random by default')
    .option('--email-verified', 'mark the address as verified')
    .option('--mascot-config <JSON>', 'a JSON object', parseJsonObject)
    .option('--role-at-organization <role>')
    .option('--json', 'print JSON')
    .action(async (options: UserOptions) => {
      const { email, firstName, lastName, distinctId, emailVerified, mascotConfig, roleAtOrganization } =
        options;
      const created = await withPool((pool) =>
        createUser(pool, {
          email,
          ...optional('first_name', firstName),
          ...optional('last_name', lastName),
          ...optional('distinct_id', distinctId),
          ...optional('is_email_verified', emailVerified),
          ...optional('mascot_config', mascotConfig),
          ...optional('role_at_organization', roleAtOrganization),
        }),
      );
      printer(options)(created, () => userTable([created]));
    });

  user
    .command('list')
    .description('list all users')
    .option('--json', 'print JSON')
    .action(async (options: JsonOption) => {
      const users = await withPool(listUsers);
      printer(options)(users, () => userTable(users));
    });
}

interface ProjectOptions extends JsonOption {
  readonly id?: number;
  readonly name: string;
  readonly timezone: string;
  readonly weekStartDay: Project['week_start_day'];
  readonly testAccountFilters?: unknown[];
  readonly dashboardRestrictionLevel?: RestrictionLevel;
}

/** `project create|list`. */
export function addProjectCommands(program: Command): void {
  const project = program.command('project').description('manage projects, which own events and exports');

  project
    .command('create')
    .description('create a project')
    .requiredOption('--name <name>')
    .option('--id <number>', 'the team_id of its rows; by default the next free one', parseId)
    .option('--timezone <name>', 'an IANA time zone', 'UTC')
    .addOption(
      new Option('--week-start-day <day>', 'first day of the week').choices(weekStartDays).default('sunday'),
    )
    .option('--test-account-filters <JSON>', 'a JSON array', parseJsonArray)
    .option(
      '--dashboard-restriction-level <number>',
      '21: everyone in the project can edit dashboards; 37: only the collaborators of each dashboard (default: 21)',
      parseRestrictionLevel,
    )
    .option('--json', 'print JSON')
    .action(async (options: ProjectOptions) => {
      const { id, name, timezone, weekStartDay, testAccountFilters, dashboardRestrictionLevel } = options;
      const created = await withPool((pool) =>
        createProject(pool, {
          id,
          name,
          timezone,
          week_start_day: weekStartDay,
          test_account_filters: testAccountFilters,
          dashboard_restriction_level: dashboardRestrictionLevel,
        }),
      );
      printer(options)(created, () => projectTable([created]));
    });

  project
    .command('list')
    .description('list all projects')
    .option('--json', 'print JSON')
    .action(async (options: JsonOption) => {
      const projects = await withPool(listProjects);
      printer(options)(projects, () => projectTable(projects));
    });
}

interface KeyOptions extends JsonOption {
  readonly user?: number;
  readonly project: number;
  readonly scopes: string;
}

/** `key create|list|revoke`. */
export function addKeyCommands(program: Command): void {
  const key = program.command('key').description('manage personal API keys');

  key
    .command('create')
    .description('create a key; it is printed once, only its hash is stored')
    .option('--user <id>', 'owner of the key; by default the first user', parseId)
    .requiredOption('--project <id>', 'project that the key gives access to', parseId)
    .requiredOption('--scopes <list>', `separated by commas: ${scopes.join(', ')}`)
    .option('--json', 'print JSON')
    .action(async (options: KeyOptions) => {
      const created = await withPool(async (pool) => {
        const user = await resolveUser(pool, options.user);
        const list = options.scopes.split(',').map((scope) => scope.trim());
        return createKey(pool, { user_id: user, project_id: options.project, scopes: list });
      });
      printer(options)(created, () => [`id   ${created.id}`, `key  ${created.key}`]);
    });

  key
    .command('list')
    .description('list all keys, without their secrets')
    .option('--json', 'print JSON')
    .action(async (options: JsonOption) => {
      const keys = await withPool(listKeys);
      printer(options)(keys, () =>
        table(
          ['id', 'user', 'project', 'scopes', 'created', 'revoked'],
          keys.map((one) => [
            one.id,
            one.user_id,
            one.project_id,
            one.scopes.join(','),
            one.created_at,
            one.revoked_at,
          ]),
        ),
      );
    });

  key
    .command('revoke')
    .description('revoke a key permanently')
    .argument('<id>', 'id of the key, from "key list"')
    .option('--json', 'print JSON')
    .action(async (id: string, options: JsonOption) => {
      if (!(await withPool((pool) => revokeKey(pool, id))))
        throw new CliError(`There is no active key ${id}.`);
      printer(options)({ id, revoked: true }, () => [`Revoked key ${id}.`]);
    });
}

/** A field, omitted when its value is undefined. */
const optional = <Name extends string, Value>(
  name: Name,
  value: Value | undefined,
): Partial<Record<Name, Value>> =>
  value === undefined ? {} : ({ [name]: value } as Partial<Record<Name, Value>>);

const userTable = (users: readonly User[]): string[] =>
  table(
    ['id', 'email', 'first name', 'last name', 'uuid'],
    users.map((user) => [user.id, user.email, user.first_name, user.last_name, user.uuid]),
  );

const projectTable = (projects: readonly Project[]): string[] =>
  table(
    ['id', 'name', 'timezone', 'week starts on', 'external id'],
    projects.map(({ id, name, timezone, week_start_day, external_id }) => [
      id,
      name,
      timezone,
      week_start_day,
      external_id,
    ]),
  );
