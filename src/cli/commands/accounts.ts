import { Option, type Command } from 'commander';
import {
  createKey,
  createProject,
  createUser,
  listKeys,
  listProjects,
  listUsers,
  revokeKey,
  weekStartDays,
  type Project,
  type User,
} from '../../http/accounts.ts';
import { scopes } from '../../http/api_keys.ts';
import type { RestrictionLevel } from '../../http/dashboards/access_levels.ts';
import { CliError } from '../cli_error.ts';
import { parseId, parseJsonArray, parseJsonObject, parseRestrictionLevel } from '../arguments.ts';
import { chosenUser } from '../chosen_user.ts';
import { printer, table } from '../output.ts';
import { withPool } from '../with_pool.ts';

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
  const user = program.command('user').description('people who own keys');

  user
    .command('create')
    .description('make a user')
    .requiredOption('--email <address>')
    .option('--first-name <name>')
    .option('--last-name <name>')
    .option('--distinct-id <id>', 'made up when it is not given')
    .option('--email-verified', 'the address has been verified')
    .option('--mascot-config <JSON>', 'an object', parseJsonObject)
    .option('--role-at-organization <role>')
    .option('--json', 'print one JSON document')
    .action(async (options: UserOptions) => {
      const { email, firstName, lastName, distinctId, emailVerified, mascotConfig, roleAtOrganization } =
        options;
      const created = await withPool((pool) =>
        createUser(pool, {
          email,
          ...given('first_name', firstName),
          ...given('last_name', lastName),
          ...given('distinct_id', distinctId),
          ...given('is_email_verified', emailVerified),
          ...given('mascot_config', mascotConfig),
          ...given('role_at_organization', roleAtOrganization),
        }),
      );
      printer(options)(created, () => userTable([created]));
    });

  user
    .command('list')
    .description('show every user')
    .option('--json', 'print one JSON document')
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
  const project = program.command('project').description('owners of events and exports');

  project
    .command('create')
    .description('make a project')
    .requiredOption('--name <name>')
    .option('--id <number>', 'the team_id of its rows; the next free one when it is not given', parseId)
    .option('--timezone <name>', 'an IANA time zone', 'UTC')
    .addOption(
      new Option('--week-start-day <day>', 'first day of the week').choices(weekStartDays).default('sunday'),
    )
    .option('--test-account-filters <JSON>', 'an array', parseJsonArray)
    .option(
      '--dashboard-restriction-level <number>',
      '21: everyone in the project may edit dashboards; 37: only the collaborators of each (default: 21)',
      parseRestrictionLevel,
    )
    .option('--json', 'print one JSON document')
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
    .description('show every project')
    .option('--json', 'print one JSON document')
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
  const key = program.command('key').description('personal API keys');

  key
    .command('create')
    .description('make a key; it is shown once and only its hash is stored')
    .option('--user <id>', 'whose key it is; the first user when it is not given', parseId)
    .requiredOption('--project <id>', 'the project that it is for', parseId)
    .requiredOption('--scopes <list>', `with commas between them: ${scopes.join(', ')}`)
    .option('--json', 'print one JSON document')
    .action(async (options: KeyOptions) => {
      const created = await withPool(async (pool) => {
        const user = await chosenUser(pool, options.user);
        const list = options.scopes.split(',').map((scope) => scope.trim());
        return createKey(pool, { user_id: user, project_id: options.project, scopes: list });
      });
      printer(options)(created, () => [`id   ${created.id}`, `key  ${created.key}`]);
    });

  key
    .command('list')
    .description('show every key, without the keys themselves')
    .option('--json', 'print one JSON document')
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
    .description('revoke a key for ever')
    .argument('<id>', 'id of the key, as "key list" shows it')
    .option('--json', 'print one JSON document')
    .action(async (id: string, options: JsonOption) => {
      if (!(await withPool((pool) => revokeKey(pool, id))))
        throw new CliError(`There is no key ${id} in force.`);
      printer(options)({ id, revoked: true }, () => [`Key ${id} is revoked.`]);
    });
}

/** A member, left out when its value is. */
const given = <Name extends string, Value>(
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
    ['id', 'name', 'timezone', 'week starts'],
    projects.map((project) => [project.id, project.name, project.timezone, project.week_start_day]),
  );
